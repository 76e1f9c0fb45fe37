"""The interceptors of a client: objects that see, and may change, what it sends or gives out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from kafkapy.client.serialization import load_object

log = logging.getLogger("kafkapy.client")


class Interceptors:
    """Owns the objects of `interceptor.classes` (objects, classes, or `module:name` of a class), called in their order.

    Methods may be left out. As with Java's, what one raises is logged and the client goes on; where they pass something
    on, the next one then gets what this one got.
    """

    def __init__(self, configured: Sequence[Any]) -> None:
        found = [load_object("interceptor.classes", each) if isinstance(each, str) else each for each in configured]
        self._all = [each() if isinstance(each, type) else each for each in found]

    def __bool__(self) -> bool:
        return bool(self._all)

    def pass_on(self, method: str, *given: Any) -> Any:
        """What is left of `given` (a tuple, if that is several things) behind all of them."""
        for each in self._having(method):
            try:
                changed = getattr(each, method)(*given)
                given = changed if len(given) > 1 else (changed,)
            except Exception:
                log.exception("An interceptor failed in %s", method)
        return given if len(given) > 1 else given[0]

    def tell(self, method: str, *told: Any) -> None:
        """Something has happened."""
        for each in self._having(method):
            try:
                getattr(each, method)(*told)
            except Exception:
                log.exception("An interceptor failed in %s", method)

    def _having(self, method: str) -> list[Any]:
        return [each for each in self._all if hasattr(each, method)]
