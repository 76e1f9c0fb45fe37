"""The base class of objects that a `with` statement closes."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closing:
    """A context manager whose end calls `close`, which the subclass defines."""

    __slots__ = ()

    def close(self) -> None:
        """Releases what the object holds. Each subclass defines this method; here it raises TypeError."""
        raise TypeError(f"{type(self).__name__} does not define close")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
