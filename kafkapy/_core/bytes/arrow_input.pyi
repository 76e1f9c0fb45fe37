from typing import Any

INPUT_COLUMNS: tuple[str, ...]

class ArrowInput:
    rows: int
    rows_before: int
    def __init__(self, source: Any) -> None: ...
    def next_batch(self) -> bool: ...
    def row(
        self, index: int
    ) -> tuple[bytes | str | None, bytes | str | None, int | None, int | None, list[tuple[Any, Any]] | None]: ...
