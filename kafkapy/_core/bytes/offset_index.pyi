from kafkapy._core.bytes.index_file import CorruptIndexError as CorruptIndexError
from kafkapy._core.bytes.index_file import IndexFile

class OffsetIndex(IndexFile):
    def append(self, offset: int, position: int) -> None: ...
