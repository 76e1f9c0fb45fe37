from typing_extensions import Buffer

class RecordDecompressor:
    def largest_timestamp(self, batch: Buffer) -> int | None: ...
