from typing import Any, ClassVar, Self

from kafkapy._core.bytes.wire import Reader, Writer

EMPTY: Any

def absent(message: Message, field: str, version: int) -> Exception: ...

class Message:
    API_KEY: ClassVar[int]
    FIELDS: ClassVar[tuple[str, ...]]
    VERSIONS: ClassVar[range | tuple[int, ...]]
    LOWEST_VERSION: ClassVar[int]
    HIGHEST_VERSION: ClassVar[int]
    FLEXIBLE_VERSION: ClassVar[int]
    @classmethod
    def decode(cls, buffer: Any, version: int, pos: int = 0, end: int | None = None) -> Self: ...
    @classmethod
    def read(cls, reader: Reader, version: int) -> Self: ...
    def write(self, writer: Writer, version: int) -> None: ...
    def encode(self, version: int) -> bytes: ...
    def encode_chunks(self, version: int, prefix: bytes = b"") -> list[Any]: ...
