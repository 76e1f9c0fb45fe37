from collections.abc import Iterator

from typing_extensions import Buffer

NONE: int
GZIP: int
SNAPPY: int
LZ4: int
ZSTD: int
CODEC_NAMES: tuple[str, ...]
CHUNK_BYTES: int

class DecompressionError(Exception): ...
class DecompressedTooLargeError(DecompressionError): ...

def compress(codec: int, data: Buffer, level: int | None = None) -> bytes: ...
def decompress(codec: int, data: Buffer, max_bytes: int) -> bytes: ...
def decompress_chunks(codec: int, data: Buffer) -> Iterator[bytes]: ...
