"""A client of a schema registry with Confluent's HTTP API. It needs no library."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from ssl import SSLContext
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from kafkapy.client.schema.bounded_cache import BoundedCache
from kafkapy.client.schema.errors import RegistryFailure
from kafkapy.client.schema.model import (
    DEEPEST_REFERENCE,
    MOST_REFERENCES,
    RegisteredSchema,
    Schema,
    SchemaReference,
)
from kafkapy.errors import ConfigError

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
LATEST_VERSION = "latest"
_RETRIED = (408, 429, 500, 502, 503, 504)
_FIRST_PAUSE_S = 0.1
_LONGEST_RETRY_PAUSE_S = 20.0
LARGEST_RESPONSE = 64 << 20
# The number of connections that are kept for further requests.
_MOST_IDLE = 8


class RegistryClient:
    """Registers and finds schemas. Thread-safe. Schemas by id and ids by schema are cached within `cache_size` entries.

    `urls` are the addresses of the registry's instances. If an instance cannot be reached, the next one is tried.
    `user` and `password` are for instances that require a login. `tls` is for https; None means the certificate
    authorities that the machine trusts. A request is repeated `retries` times after an error that a repetition may
    remove; the pause before it is doubled from `first_pause_s` to `longest_pause_s`. `more_headers()` returns further
    headers of each request, such as a token. Methods raise RegistryFailure for a request that is refused or fails.

    Arguments of several methods: `deleted` includes versions and subjects that were deleted softly, that is hidden but
    not removed. `normalize` has the registry compare schemas in their normal form. `format` is the form of the returned
    text: "" for the usual one, "serialized" for a Protobuf schema as a descriptor in base64.
    """

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        user: str = "",
        password: str = "",
        tls: SSLContext | None = None,
        timeout_s: float = 10.0,
        retries: int = 3,
        first_pause_s: float = _FIRST_PAUSE_S,
        longest_pause_s: float = _LONGEST_RETRY_PAUSE_S,
        cache_size: int = 1000,
        more_headers: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        listed = urls.split(",") if isinstance(urls, str) else urls
        self._addresses = [_Address(each.strip(), user, password) for each in listed if each.strip()]
        if not self._addresses:
            raise ConfigError("the address of a schema registry is missing, such as http://localhost:8081")
        self._tls = tls
        self._timeout_s = timeout_s
        self._retries = retries
        self._first_pause_s = first_pause_s
        self._longest_pause_s = longest_pause_s
        self._more_headers = more_headers
        self._lock = threading.Lock()
        self._idle: list[tuple[_Address, http.client.HTTPConnection]] = []
        self._by_id: BoundedCache[tuple[int, str, str, str], RegisteredSchema] = BoundedCache(cache_size)
        self._by_guid: BoundedCache[tuple[str, str], Schema] = BoundedCache(cache_size)
        self._by_schema: BoundedCache[tuple[str, str, bool], RegisteredSchema] = BoundedCache(cache_size)
        self._versions: BoundedCache[tuple[str, int, str], RegisteredSchema] = BoundedCache(cache_size)

    def __repr__(self) -> str:
        return f"RegistryClient({', '.join(each.url for each in self._addresses)})"

    # Schemas

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Returns the version of a subject that has the schema. Registers the schema if the subject lacks it.

        With `normalize` the registry compares and stores the schema in its normal form.
        """
        key = (subject, schema.content_key, normalize)
        found = self._by_schema.get(key)
        if found is None:
            query = {"normalize": "true"} if normalize else {}
            result = self.request("POST", f"/subjects/{_quoted(subject)}/versions", query, schema.as_json())
            found = RegisteredSchema(
                schema, int(result["id"]), subject, int(result.get("version") or 0), result.get("guid") or ""
            )
            self._by_schema.put(key, found)
        return found

    def look_up(
        self, subject: str, schema: Schema, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """Returns the version of a subject that has this schema; `deleted` includes versions that were deleted softly.

        With `normalize` the registry compares the schemas in their normal form.
        """
        query = {name: "true" for name, value in (("normalize", normalize), ("deleted", deleted)) if value}
        return _registered(self.request("POST", f"/subjects/{_quoted(subject)}", query, schema.as_json()))

    def schema(self, schema_id: int, *, subject: str = "", format: str = "", reference_format: str = "") -> Schema:
        """Returns the schema with an id. Ids are unique within a context of the registry.

        The context is the one that the name `subject` contains, such as ":.ctx:name", or else the default context.
        `format` "serialized" returns a Protobuf schema as a descriptor in base64, "" returns its text;
        `reference_format` is the form of the schemas that it refers to.
        """
        key = (schema_id, subject, format, reference_format)
        found = self._by_id.get(key)
        if found is None:
            query = {"subject": subject, "format": format, "reference_format": reference_format}
            given = {name: value for name, value in query.items() if value}
            result = self.request("GET", f"/schemas/ids/{schema_id}", given)
            found = self._by_id.put(key, RegisteredSchema(Schema.from_json(result), schema_id))
        return found.schema

    def schema_of_guid(self, guid: str, *, format: str = "") -> Schema:
        """Returns the schema with a GUID.

        `format` "serialized" returns a Protobuf schema as a descriptor in base64, "" returns its text.
        """
        key = (guid, format)
        found = self._by_guid.get(key)
        if found is None:
            result = self.request("GET", f"/schemas/guids/{_quoted(guid)}", {"format": format} if format else {})
            found = self._by_guid.put(key, Schema.from_json(result))
        return found

    def version(
        self, subject: str, version: int | str = LATEST_VERSION, *, deleted: bool = False, format: str = ""
    ) -> RegisteredSchema:
        """Returns a version of a subject, by default the latest one. Versions by number are cached.

        `deleted` also finds a version that was deleted softly. `format` "serialized" returns a Protobuf schema as a
        descriptor in base64, "" returns its text.
        """
        key = (subject, version, format) if isinstance(version, int) and version > 0 and not deleted else None
        found = self._versions.get(key) if key is not None else None
        if found is None:
            query = {name: value for name, value in (("deleted", deleted and "true"), ("format", format)) if value}
            found = _registered(self.request("GET", f"/subjects/{_quoted(subject)}/versions/{version}", query))
            if key is not None:
                self._versions.put(key, found)
        return found

    def referred(self, schema: Schema, *, format: str = "") -> dict[str, Schema]:
        """Returns all schemas to which a schema refers, directly or not, by the names of the references.

        In the result's order, a schema comes after those that it refers to. Raises RegistryFailure for references in a
        circle, for a chain of more than DEEPEST_REFERENCE references, for more than MOST_REFERENCES in all, and if a
        request fails.
        """
        found: dict[str, Schema] = {}

        def add(references: tuple[SchemaReference, ...], path: tuple[SchemaReference, ...]) -> None:
            for each in references:
                if each in path:
                    raise RegistryFailure(f"the schemas of {each.subject} refer to each other in a circle")
                if each.name in found:
                    continue
                if len(path) >= DEEPEST_REFERENCE:
                    raise RegistryFailure(f"a chain of references has more than {DEEPEST_REFERENCE} schemas")
                if len(found) >= MOST_REFERENCES:
                    raise RegistryFailure(f"the schema refers to more than {MOST_REFERENCES} schemas")
                target = self.version(each.subject, each.version, deleted=False, format=format).schema
                add(target.references, (*path, each))
                found[each.name] = target

        add(schema.references, ())
        return found

    def versions_of_id(self, schema_id: int) -> list[tuple[str, int]]:
        """Returns the pairs of subject and version number under which the schema with this id is registered."""
        return [
            (each["subject"], each["version"]) for each in self.request("GET", f"/schemas/ids/{schema_id}/versions")
        ]

    # Subjects

    def subjects(self, *, prefix: str | None = None, deleted: bool = False) -> list[str]:
        """Returns the names of all subjects, or of those that begin with `prefix`.

        `deleted` includes subjects that were deleted softly.
        """
        query = {"subjectPrefix": prefix} if prefix is not None else {}
        found: list[str] = self.request("GET", "/subjects", query | ({"deleted": "true"} if deleted else {}))
        return found

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Returns the numbers of a subject's versions; `deleted` includes those that were deleted softly."""
        query = {"deleted": "true"} if deleted else {}
        found: list[int] = self.request("GET", f"/subjects/{_quoted(subject)}/versions", query)
        return found

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Deletes a subject softly: hides it without removing its versions. Returns the numbers of the deleted
        versions.

        If `permanent` is True, removes a subject that was deleted softly before, and raises RegistryFailure for any
        other subject.
        """
        query = {"permanent": "true"} if permanent else {}
        found: list[int] = self.request("DELETE", f"/subjects/{_quoted(subject)}", query)
        self.forget()
        return found

    def delete_version(self, subject: str, version: int | str, *, permanent: bool = False) -> int:
        """Deletes a version softly: hides it without removing it. Returns the number of the version.

        If `permanent` is True, removes a version that was deleted softly before, and raises RegistryFailure for any
        other version.
        """
        query = {"permanent": "true"} if permanent else {}
        found: int = self.request("DELETE", f"/subjects/{_quoted(subject)}/versions/{version}", query)
        self.forget()
        return found

    def incompatibilities(
        self, subject: str, schema: Schema, version: int | str | None = LATEST_VERSION
    ) -> list[str] | None:
        """Returns None if a schema is compatible with a version, otherwise the reasons why it is not.

        With `version` None the registry compares the schema with the versions that the subject's compatibility level
        requires.
        """
        path = f"/compatibility/subjects/{_quoted(subject)}/versions" + ("" if version is None else f"/{version}")
        result = self.request("POST", path, {"verbose": "true"}, schema.as_json())
        return None if result["is_compatible"] else list(result.get("messages") or ())

    # Settings

    def level(self, subject: str | None = None) -> str:
        """Returns the compatibility level of a subject, such as BACKWARD, or the global level if `subject` is None."""
        result = self.request("GET", _setting("config", subject), {"defaultToGlobal": "true"} if subject else {})
        return str(result["compatibilityLevel"])

    def set_level(self, level: str, subject: str | None = None) -> None:
        """Sets the compatibility level of a subject, or the global level if `subject` is None."""
        self.request("PUT", _setting("config", subject), {}, {"compatibility": level})

    def mode(self, subject: str | None = None) -> str:
        """Returns the mode of a subject, such as READWRITE, or the global mode if `subject` is None."""
        result = self.request("GET", _setting("mode", subject), {"defaultToGlobal": "true"} if subject else {})
        return str(result["mode"])

    def set_mode(self, mode: str, subject: str | None = None, *, force: bool = False) -> None:
        """Sets the mode of a subject, or the global mode if `subject` is None.

        `force` allows the mode IMPORT although schemas are registered.
        """
        self.request("PUT", _setting("mode", subject), {"force": "true"} if force else {}, {"mode": mode})

    # Requests

    def forget(self) -> None:
        """Drops all cached schemas and ids."""
        for cache in (self._by_id, self._by_guid, self._by_schema, self._versions):
            cache.clear()

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | Sequence[str]] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Sends a request and returns the JSON value of its response. Blocks.

        `path` begins with a slash; `query` has parameters of the URL, and `body` is sent as JSON.
        """
        target = path + (f"?{urlencode(query, doseq=True)}" if query else "")
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        attempts = (self._retries + 1) * len(self._addresses)
        for attempt in range(attempts):
            address = self._addresses[attempt % len(self._addresses)]
            try:
                return self._exchange(address, method, target, content)
            except RegistryFailure as error:
                if attempt + 1 == attempts or error.status not in (-1, *_RETRIED):
                    raise
            if (attempt + 1) % len(self._addresses) == 0:
                rounds = attempt // len(self._addresses)
                time.sleep(min(self._longest_pause_s, self._first_pause_s * 2**rounds))
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Closes the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _exchange(self, address: _Address, method: str, target: str, content: bytes | None) -> Any:
        headers = {"Accept": f"{CONTENT_TYPE}, application/json", **address.headers}
        if self._more_headers is not None:
            headers.update(self._more_headers())
        if content is not None:
            headers["Content-Type"] = CONTENT_TYPE
        connection, is_kept = self._connection(address)
        try:
            try:
                connection.request(method, address.path + target, content, headers)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException):
                if not is_kept:
                    raise
                connection.close()
                connection.request(method, address.path + target, content, headers)
                response = connection.getresponse()
            data = response.read(LARGEST_RESPONSE)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise RegistryFailure(f"{address.url}: {error or type(error).__name__}") from error
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append((address, connection))
                connection = None
        if connection is not None:
            connection.close()
        return _parsed(address, response.status, data)

    def _connection(self, address: _Address) -> tuple[Any, bool]:
        """Returns a connection to the address, and True if it was idle and is used again, False if it is new."""
        with self._lock:
            for position, (other, connection) in enumerate(self._idle):
                if other is address:
                    del self._idle[position]
                    return connection, True
        if address.is_tls:
            return (
                http.client.HTTPSConnection(address.host, address.port, timeout=self._timeout_s, context=self._tls),
                False,
            )
        return http.client.HTTPConnection(address.host, address.port, timeout=self._timeout_s), False


class _Address:
    """The address of one instance of the registry. Its `url` does not contain the password."""

    def __init__(self, url: str, user: str, password: str) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"{url} is not the address of a schema registry: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url} is not the address of a schema registry, such as http://localhost:8081")
        self.is_tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = port
        self.path = parts.path.rstrip("/")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{self.path}"
        self.headers: dict[str, str] = {}
        user, password = unquote(parts.username or "") or user, unquote(parts.password or "") or password
        if user:
            token = base64.b64encode(f"{user}:{password}".encode()).decode()
            self.headers["Authorization"] = f"Basic {token}"


def _parsed(address: _Address, status: int, data: bytes) -> Any:
    found: Any = None
    with suppress(ValueError):
        found = json.loads(data)
    if 200 <= status < 300 and (found is not None or data.strip() in (b"", b"null")):
        return found
    if isinstance(found, dict) and "message" in found:
        raise RegistryFailure(str(found["message"]), status, int(found.get("error_code") or status))
    shown = data[:200].decode("utf-8", "replace")
    raise RegistryFailure(f"{address.url} has answered with status {status}: {shown}", status, status)


def _registered(fields: Mapping[str, Any]) -> RegisteredSchema:
    return RegisteredSchema(
        Schema.from_json(fields), int(fields["id"]), fields["subject"], int(fields["version"]), fields.get("guid") or ""
    )


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _setting(name: str, subject: str | None) -> str:
    return f"/{name}" if subject is None else f"/{name}/{_quoted(subject)}"
