"""The registry of served APIs and versions, which the decorator on each handler declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol, TypeVar

from kafkapy.errors import Error
from kafkapy.protocol.api import API_TABLE, FORWARDABLE, ApiKey, request_class, response_header_version

# The parameters are a RequestContext and a message of the API; a handler that returns None responds later.
Handler = Callable[[Any, Any], "Response | None"]
OnError = Callable[[Any, int, Error, "str | None"], "Response | None"]
H = TypeVar("H", bound=Handler)

DECLARATIONS = "served_apis"
# The kinds of listeners, as in the definitions of the messages.
BROKER = "broker"
CONTROLLER = "controller"


class Response(Protocol):
    """A response that can be sent: a message of an API's response class, or an encoded response body.

    An encoded body also has a method `delayed(version, throttle_ms)`, which returns the body with the throttle time.
    """

    def encode_chunks(self, version: int, prefix: bytes = b"") -> list[Any]:
        """Returns `prefix` and the bytes of the response, as a list of parts to send."""
        ...


class ServedApi:
    """One served API: its versions `lowest` to `highest`, its handler, and the function that builds error responses.
    The object does not change after its construction.
    """

    __slots__ = (
        "blocking",
        "flexible_header_from",
        "handler",
        "highest",
        "is_forwardable",
        "key",
        "lowest",
        "on_error",
        "request_class",
    )

    def __init__(
        self, key: ApiKey, lowest: int, highest: int, handler: Handler, on_error: OnError | None, blocking: bool
    ) -> None:
        api = API_TABLE[key]
        if not api.lowest <= lowest <= highest <= api.highest:
            raise ValueError(f"{key.name} has versions {api.lowest} to {api.highest}, not {lowest} to {highest}")
        self.key = key
        self.lowest = lowest
        self.highest = highest
        self.handler = handler
        self.on_error = on_error
        self.blocking = blocking
        self.is_forwardable = key in FORWARDABLE
        self.request_class: Any = request_class(key)
        # The first version whose response header has tagged fields; the header of ApiVersions never has them (KIP-511).
        self.flexible_header_from = api.flexible_from if response_header_version(key, api.highest) else 32767

    def limited_to(self, versions: tuple[int, int] | None) -> ServedApi:
        """Returns the same API, limited to `versions`, a pair (lowest version, highest version).

        Returns this object, which has all versions, if `versions` is None.
        """
        if versions is None or versions == (self.lowest, self.highest):
            return self
        return ServedApi(self.key, *versions, self.handler, self.on_error, self.blocking)

    def __repr__(self) -> str:
        return f"ServedApi({self.key.name}, {self.lowest}-{self.highest})"


def serves(
    key: ApiKey, lowest: int, highest: int, *, on_error: OnError | None = None, blocking: bool = False
) -> Callable[[H], H]:
    """Declares that the function serves versions `lowest` to `highest` of an API.

    `on_error(request, version, error, message)` returns the response for an error that the handler raised; without
    `on_error`, such an error closes the connection. A `blocking` handler runs on the handler pool.
    """

    def declare(handler: H) -> H:
        declared: list[ServedApi] = getattr(handler, DECLARATIONS, [])
        declared.append(ServedApi(key, lowest, highest, handler, on_error, blocking))
        setattr(handler, DECLARATIONS, declared)
        return handler

    return declare


def error_without_message(response: Any) -> OnError:
    """Returns an `on_error` function for an API whose response class `response` has an error code and no error
    message."""
    return lambda request, version, error, message: response(error_code=error)


def error_with_message(response: Any) -> OnError:
    """Returns an `on_error` function for an API whose response class `response` has an error code and a nullable error
    message."""
    return lambda request, version, error, message: response(error_code=error, error_message=message)


def declared_in(module: ModuleType) -> list[ServedApi]:
    """Returns the APIs that the handlers defined in `module` serve."""
    found: list[ServedApi] = []
    for value in vars(module).values():
        if callable(value) and getattr(value, "__module__", None) == module.__name__:
            found += getattr(value, DECLARATIONS, ())
    return found


class ApiRegistry:
    """The APIs that are served on one kind of listener: either the listeners of brokers, or the listeners of
    controllers.

    `modules` has the name of the module that serves each API. The module is imported when the API is first needed; the
    import checks that the module serves the API. `versions` has the lowest and the highest version of some APIs; an API
    that is not in `versions` is served in all versions that the decorator of its handler declares. `find` does not
    return APIs that Kafka does not serve on this kind of listener. Used on the reactor's thread, and by the broker's
    thread before the reactor runs.
    """

    def __init__(
        self,
        modules: Mapping[ApiKey, str],
        listener: str = BROKER,
        versions: Mapping[ApiKey, tuple[int, int]] = {},
    ) -> None:
        self._modules = dict(modules)
        self._versions = dict(versions)
        self._keys = frozenset(key for key in self._modules if listener in API_TABLE[key].listeners)
        self._served: dict[int, ServedApi] = {}

    def find(self, key: int) -> ServedApi | None:
        """Returns the API with this API key, or None if it is not served."""
        served = self._served.get(key)
        if served is None and key in self._keys:
            self._load(ApiKey(key))
            served = self._served[key]
        return served

    def served(self) -> list[ServedApi]:
        """Returns all served APIs in the order of their keys; loads every handler module."""
        return [served for key in sorted(self._keys) if (served := self.find(key)) is not None]

    def versions(self) -> list[tuple[ApiKey, int, int]]:
        """Returns each served API with its lowest and highest version, in the order of the API keys.

        Loads no module, because nearly every client asks for the versions but uses only a few of the APIs.
        """
        found = []
        for key in sorted(self._keys):
            served = self._served.get(key)
            if served is not None:
                lowest, highest = served.lowest, served.highest
            else:
                lowest, highest = self._versions.get(key) or (API_TABLE[key].lowest, API_TABLE[key].highest)
            found.append((key, lowest, highest))
        return found

    def _load(self, key: ApiKey) -> None:
        name = self._modules[key]
        for served in declared_in(import_module(name)):
            if self._modules.get(served.key) != name:
                raise LookupError(f"{name} serves {served.key.name}, which the table of handler modules does not say")
            self._served[served.key] = served.limited_to(self._versions.get(served.key))
        if key not in self._served:
            raise LookupError(f"{name} does not serve {key.name}, as the table of handler modules says")
