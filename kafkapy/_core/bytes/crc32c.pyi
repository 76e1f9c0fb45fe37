from typing_extensions import Buffer

VARIANTS: tuple[str, ...]
FASTEST_VARIANT: int

def crc32c(buffer: Buffer, start: int = 0, crc: int = 0) -> int: ...
def crc32c_with(variant: int, buffer: Buffer, start: int = 0, crc: int = 0) -> int: ...
