"""A client's interceptors: objects that see, and may change, the records that it sends or returns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafkapy.client.serialization import load_object

log = logging.getLogger("kafkapy.client")


class Interceptors:
    """The interceptors of a client, called in the order of `interceptor.classes`.

    Each element of `interceptor.classes` is an object, a class, or the name `module:name` of a class. An interceptor
    need not have all methods. As in Java's clients, an exception of an interceptor is logged and otherwise ignored; in
    `transform` the next interceptor then gets the unchanged arguments.
    """

    def __init__(self, configured: Sequence[Any]) -> None:
        found = [load_object("interceptor.classes", each) if isinstance(each, str) else each for each in configured]
        self._all = [each() if isinstance(each, type) else each for each in found]

    def __bool__(self) -> bool:
        return bool(self._all)

    def transform(self, method: str, *arguments: Any) -> Any:
        """Calls the method named `method` of each interceptor in order; each gets the arguments that the previous one
        returned.

        Returns the arguments that the last interceptor returned: a tuple if there are several, otherwise the single
        argument.
        """
        for each in self._having(method):
            try:
                changed = getattr(each, method)(*arguments)
                arguments = changed if len(arguments) > 1 else (changed,)
            except Exception:
                log.exception("An interceptor failed in %s", method)
        return arguments if len(arguments) > 1 else arguments[0]

    def transform_headers(self, topic: str, headers: Any) -> tuple[Any, list[Callable[[Any, Any], object]]]:
        """Returns a record's headers after the interceptors have changed them, and the callbacks to call after the
        delivery.

        Calls `on_send_record(topic, headers)` of each interceptor that has this method, with the headers as a tuple of
        (name, value). The method returns the changed tuple, and a callback or None. A callback is called with
        (metadata, error). Java's interceptors change headers in `onSend`; here that method gets no headers.
        """
        having = self._having("on_send_record")
        if not having:
            return headers, []
        callbacks = []
        changed = tuple(headers.items() if isinstance(headers, Mapping) else headers or ())
        for each in having:
            try:
                changed, callback = each.on_send_record(topic, changed)
            except Exception:
                log.exception("An interceptor failed in on_send_record")
            else:
                callbacks += [callback] if callback is not None else []
        return changed, callbacks

    def notify(self, method: str, *arguments: Any) -> None:
        """Calls the method named `method`, with these arguments, of every interceptor that has such a method."""
        for each in self._having(method):
            try:
                getattr(each, method)(*arguments)
            except Exception:
                log.exception("An interceptor failed in %s", method)

    def _having(self, method: str) -> list[Any]:
        return [each for each in self._all if hasattr(each, method)]
