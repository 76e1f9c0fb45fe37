"""A client's interceptors: objects that see, and may change, the records that it sends or returns."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from kafkapy.client.serialization import load_object

log = logging.getLogger("kafkapy.client")


class Interceptors:
    """The interceptors of a client, called in the order of `interceptor.classes`.

    An element of that key is an object, a class, or `module:name` of a class; its methods may be left out. As in Java's
    clients, an exception of an interceptor is logged and otherwise ignored; in `transform` the next interceptor then
    gets the unchanged arguments.
    """

    def __init__(self, configured: Sequence[Any]) -> None:
        found = [load_object("interceptor.classes", each) if isinstance(each, str) else each for each in configured]
        self._all = [each() if isinstance(each, type) else each for each in found]

    def __bool__(self) -> bool:
        return bool(self._all)

    def transform(self, method: str, *arguments: Any) -> Any:
        """Returns the arguments after every interceptor has changed them.

        Several arguments are returned as a tuple, a single argument as itself.
        """
        for each in self._having(method):
            try:
                changed = getattr(each, method)(*arguments)
                arguments = changed if len(arguments) > 1 else (changed,)
            except Exception:
                log.exception("An interceptor failed in %s", method)
        return arguments if len(arguments) > 1 else arguments[0]

    def notify(self, method: str, *arguments: Any) -> None:
        """Calls a method of every interceptor that has it."""
        for each in self._having(method):
            try:
                getattr(each, method)(*arguments)
            except Exception:
                log.exception("An interceptor failed in %s", method)

    def _having(self, method: str) -> list[Any]:
        return [each for each in self._all if hasattr(each, method)]
