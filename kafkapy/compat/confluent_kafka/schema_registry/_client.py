"""confluent-kafka's client of a schema registry."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kafkapy.client.closing import Closing
from kafkapy.client.schema.bounded_cache import BoundedCache
from kafkapy.client.schema.errors import RegistryFailure
from kafkapy.client.schema.registry_client import RegistryClient
from kafkapy.client.schema.serde import CACHE_SIZE
from kafkapy.compat.confluent_kafka.schema_registry._associations import (
    Association,
    AssociationCreateOrUpdateRequest,
    AssociationResponse,
)
from kafkapy.compat.confluent_kafka.schema_registry._bearer import BEARER_KEYS, bearer_headers
from kafkapy.compat.confluent_kafka.schema_registry._model import (
    RegisteredSchema,
    Schema,
    SchemaVersion,
    ServerConfig,
)
from kafkapy.compat.confluent_kafka.schema_registry.error import SchemaRegistryError
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

# The keys that are honoured; others are refused.
_KEYS = frozenset(
    (
        *("url", "basic.auth.user.info", "basic.auth.credentials.source", "ssl.ca.location"),
        *("ssl.certificate.location", "ssl.key.location", "ssl.key.password", "timeout", "max.retries"),
        *("cache.capacity", "cache.latest.ttl.sec", "retries.wait.ms", "retries.max.wait.ms", *BEARER_KEYS),
    )
)
_NUMBERS = ("cache.capacity", "cache.latest.ttl.sec", "max.retries", "retries.wait.ms", "retries.max.wait.ms")


class _Latest(NamedTuple):
    """The latest version of a subject in the cache, and the monotonic time in seconds at which it expires."""

    version: RegisteredSchema
    end: float


class SchemaRegistryClient(Closing):
    """A client of a schema registry. Any thread may use it. `conf` has confluent-kafka's keys; others raise ValueError.

    Arguments of several methods: `deleted` also returns versions and subjects that were deleted softly, and
    `deleted_only` returns only those. `offset` is the number of elements of a list to skip, and `limit` the greatest
    number to return, -1 for all. `fmt` is the form of a schema's text, such as "serialized". Methods raise
    SchemaRegistryError for a request that the registry refuses, and OSError if the registry cannot be reached.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        unknown = sorted(set(conf) - _KEYS)
        if unknown:
            raise ValueError(f"Unrecognized properties: {', '.join(unknown)}")
        if not conf.get("url"):
            raise ValueError("Missing required configuration property url")
        self._conf = dict(conf)
        for key in _NUMBERS:
            if conf.get(key) is not None and not isinstance(conf[key], int | float):
                raise TypeError(f"{key} must be a number, not {type(conf[key]).__name__}")
        user, _, password = str(conf.get("basic.auth.user.info", "")).partition(":")
        cache_size = int(conf.get("cache.capacity") or CACHE_SIZE)
        self._latest: BoundedCache[tuple[str, ...], _Latest] = BoundedCache(cache_size)
        self._latest_ttl_s = conf.get("cache.latest.ttl.sec")
        try:
            self.registry = RegistryClient(
                conf["url"],
                user=user,
                password=password,
                tls=_tls(conf),
                timeout_s=float(conf.get("timeout") or 30),
                retries=int(conf.get("max.retries", 3)),
                first_pause_s=float(conf.get("retries.wait.ms", 1000)) / 1000,
                longest_pause_s=float(conf.get("retries.max.wait.ms", 20000)) / 1000,
                cache_size=cache_size,
                more_headers=bearer_headers(conf),
            )
        except ConfigError as error:
            raise ValueError(str(error)) from None

    def close(self) -> None:
        """Closes the connections."""
        self.registry.close()

    def config(self) -> dict[str, Any]:
        """Returns the configuration with which the client was made."""
        return self._conf

    def register_schema(self, subject_name: str, schema: Schema, normalize_schemas: bool = False) -> int:
        """Returns the id of a schema, and registers the schema first if the subject does not have it.

        If `normalize_schemas`, the registry stores and compares the schema in its normal form.
        """
        found = self.register_schema_full_response(subject_name, schema, normalize_schemas).schema_id
        assert found is not None
        return found

    def register_schema_full_response(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False
    ) -> RegisteredSchema:
        """Returns the version of a subject that has the schema; registers the schema first if no version has it.

        If `normalize_schemas`, the registry stores and compares the schema in its normal form.
        """
        with refusals():
            found = self.registry.register(subject_name, schema.as_model(), normalize=normalize_schemas)
        self.clear_latest_caches()
        return RegisteredSchema.from_model(found)

    def get_schema(
        self,
        schema_id: int,
        subject_name: str | None = None,
        fmt: str | None = None,
        reference_format: str | None = None,
    ) -> Schema:
        """Returns the schema with an id.

        The id belongs to the context that `subject_name` contains, or to the default context. `fmt` is the form of the
        schema's text, such as "serialized" for a Protobuf schema as a descriptor; `reference_format` is the form of its
        references.
        """
        with refusals():
            found = self.registry.schema(
                schema_id, subject=subject_name or "", format=fmt or "", reference_format=reference_format or ""
            )
        return Schema.from_model(found)

    def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        """Returns the schema with a GUID. `fmt` is the form of the schema's text, such as "serialized"."""
        with refusals():
            return Schema.from_model(self.registry.schema_of_guid(guid, format=fmt or ""))

    def get_schema_types(self) -> list[str]:
        """Returns the types of schemas that the registry knows."""
        return list(self._send("GET", "/schemas/types"))

    def get_subjects_by_schema_id(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        """Returns the names of the subjects that have the schema with this id.

        The id belongs to the context that `subject_name` contains, or to the default context. `deleted` includes
        subjects that were deleted softly. Skips the first `offset` names, and returns at most `limit` of the rest (-1:
        all).
        """
        query = _query(subject=subject_name, deleted=deleted, offset=offset, limit=limit)
        return list(self._send("GET", f"/schemas/ids/{schema_id}/subjects", query))

    def get_schema_versions(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[SchemaVersion]:
        """Returns the subjects and versions that have the schema with this id.

        The id belongs to the context that `subject_name` contains, or to the default context. `deleted` includes
        versions that were deleted softly. Skips the first `offset` versions, and returns at most `limit` of the rest
        (-1: all).
        """
        query = _query(subject=subject_name, deleted=deleted, offset=offset, limit=limit)
        found = self._send("GET", f"/schemas/ids/{schema_id}/versions", query)
        return [SchemaVersion.from_dict(each) for each in found]

    def lookup_schema(
        self,
        subject_name: str,
        schema: Schema,
        normalize_schemas: bool = False,
        fmt: str | None = None,
        deleted: bool = False,
    ) -> RegisteredSchema:
        """Returns the version of a subject that has this schema. Raises SchemaRegistryError if there is none.

        `deleted` includes versions that were deleted softly. With `normalize_schemas` the registry compares the schemas
        in their normal form; `fmt` has no effect.
        """
        with refusals():
            found = self.registry.look_up(subject_name, schema.as_model(), normalize=normalize_schemas, deleted=deleted)
        return RegisteredSchema.from_model(found)

    def get_subjects(
        self,
        subject_prefix: str | None = None,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        """Returns the names of all subjects, or of the subjects whose names begin with `subject_prefix`.

        `deleted` includes subjects that were deleted softly; `deleted_only` returns only such subjects. Skips the first
        `offset` names, and returns at most `limit` of the rest (-1: all).
        """
        query = _query(
            subjectPrefix=subject_prefix, deleted=deleted, deletedOnly=deleted_only, offset=offset, limit=limit
        )
        return list(self._send("GET", "/subjects", query))

    def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """Deletes a subject and returns the numbers of the deleted versions.

        Without `permanent` the deletion is soft. With `permanent` the subject must have been deleted softly before;
        otherwise the registry refuses, which raises SchemaRegistryError.
        """
        with refusals():
            deleted = self.registry.delete_subject(subject_name, permanent=permanent)
        self.clear_latest_caches()
        return deleted

    def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        """Returns the latest version of a subject. The result may be up to `cache.latest.ttl.sec` seconds old.

        `fmt` is the form of the schema's text, such as "serialized" for a Protobuf schema as a descriptor.
        """
        return self._cached(lambda: self.get_version(subject_name, "latest", fmt=fmt), "latest", subject_name, fmt)

    def get_latest_with_metadata(
        self, subject_name: str, metadata: Mapping[str, str], deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """Returns the latest version of a subject whose schema has the properties `metadata`.

        The result may be up to `cache.latest.ttl.sec` seconds old. `deleted` includes versions that were deleted
        softly; `fmt` is the form of the schema's text, such as "serialized" for a Protobuf schema as a descriptor.
        """
        query = "&".join(f"key={quote(key)}&value={quote(value)}" for key, value in metadata.items())
        path = f"{_subject(subject_name)}/metadata?{query}{'&deleted=true' if deleted else ''}"
        if fmt is not None:
            path += f"&format={quote(fmt)}"
        return self._cached(lambda: RegisteredSchema.from_dict(self._send("GET", path)), path)

    def get_version(
        self, subject_name: str, version: int | str = "latest", deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """Returns a version of a subject; `deleted` also finds a version that was deleted softly.

        `fmt` is the form of the schema's text, such as "serialized" for a Protobuf schema as a descriptor.
        """
        with refusals():
            return RegisteredSchema.from_model(
                self.registry.version(subject_name, version, deleted=deleted, format=fmt or "")
            )

    def get_referenced_by(
        self, subject_name: str, version: int | str = "latest", offset: int = 0, limit: int = -1
    ) -> list[int]:
        """Returns the ids of the schemas that refer to a version of a subject.

        Skips the first `offset` ids, and returns at most `limit` of the rest (-1: all).
        """
        query = _query(offset=offset, limit=limit)
        return list(self._send("GET", f"{_subject(subject_name)}/versions/{version}/referencedby", query))

    def get_versions(
        self,
        subject_name: str,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[int]:
        """Returns the numbers of a subject's versions.

        `deleted` includes versions that were deleted softly; `deleted_only` returns only such versions. Skips the first
        `offset` numbers, and returns at most `limit` of the rest (-1: all).
        """
        query = _query(deleted=deleted, deletedOnly=deleted_only, offset=offset, limit=limit)
        return list(self._send("GET", f"{_subject(subject_name)}/versions", query))

    def delete_version(self, subject_name: str, version: int, permanent: bool = False) -> int:
        """Deletes a version of a subject and returns the version's number.

        Without `permanent` the deletion is soft. With `permanent` the version must have been deleted softly before;
        otherwise the registry refuses, which raises SchemaRegistryError.
        """
        with refusals():
            deleted = self.registry.delete_version(subject_name, version, permanent=permanent)
        self.clear_latest_caches()
        return deleted

    def set_compatibility(self, subject_name: str | None = None, level: str | None = None) -> dict[str, Any]:
        """Sets the compatibility level of a subject, or the global level if `subject_name` is None.

        `level` is a name such as "BACKWARD"; None raises ValueError. Returns the JSON object of the response; it
        contains the level.
        """
        if level is None:
            raise ValueError("level must be set")
        return dict(self._send("PUT", _place("config", subject_name), {}, {"compatibility": str(level)}))

    def get_compatibility(self, subject_name: str | None = None) -> str:
        """Returns the compatibility level of a subject, or the global level if `subject_name` is None."""
        return str(self._send("GET", _place("config", subject_name))["compatibilityLevel"])

    def test_compatibility(
        self,
        subject_name: str,
        schema: Schema,
        version: int | str = "latest",
        normalize: bool = False,
        verbose: bool = False,
    ) -> bool:
        """Returns whether a schema is compatible with a version of a subject.

        With `normalize` the registry compares the schema's normal form; `verbose` does not change the result.
        """
        query = _query(normalize=normalize, verbose=verbose)
        path = f"/compatibility{_subject(subject_name)}/versions/{version}"
        return bool(self._send("POST", path, query, schema.to_dict())["is_compatible"])

    def test_compatibility_all_versions(
        self, subject_name: str, schema: Schema, normalize: bool = False, verbose: bool = False
    ) -> bool:
        """Returns whether a schema is compatible with the versions that the subject's compatibility level requires.

        With `normalize` the registry compares the schema's normal form; `verbose` does not change the result.
        """
        query = _query(normalize=normalize, verbose=verbose)
        path = f"/compatibility{_subject(subject_name)}/versions"
        return bool(self._send("POST", path, query, schema.to_dict())["is_compatible"])

    def set_config(self, subject_name: str | None = None, config: ServerConfig | None = None) -> ServerConfig:
        """Changes the settings of a subject, or the global settings if `subject_name` is None.

        Returns the new settings. Raises ValueError if `config` is None.
        """
        if config is None:
            raise ValueError("config must be set")
        return ServerConfig.from_dict(self._send("PUT", _place("config", subject_name), {}, config.to_dict()))

    def get_config(self, subject_name: str | None = None) -> ServerConfig:
        """Returns the settings of a subject, or the global settings if `subject_name` is None."""
        return ServerConfig.from_dict(self._send("GET", _place("config", subject_name)))

    def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """Deletes the settings of a subject, or the global settings if `subject_name` is None, and returns them."""
        return ServerConfig.from_dict(self._send("DELETE", _place("config", subject_name)))

    def get_mode(self, subject_name: str) -> str:
        """Returns the mode of a subject, such as "READWRITE"."""
        return str(self._send("GET", _place("mode", subject_name))["mode"])

    def update_mode(self, subject_name: str, mode: str, force: bool = False) -> str:
        """Sets the mode of a subject and returns the mode.

        `force` allows the mode IMPORT although the subject has schemas.
        """
        return str(self._send("PUT", _place("mode", subject_name), _query(force=force), {"mode": mode})["mode"])

    def delete_mode(self, subject_name: str) -> str:
        """Deletes the mode of a subject and returns it."""
        return str(self._send("DELETE", _place("mode", subject_name))["mode"])

    def get_global_mode(self) -> str:
        """Returns the global mode."""
        return str(self._send("GET", "/mode")["mode"])

    def update_global_mode(self, mode: str, force: bool = False) -> str:
        """Sets the global mode and returns it; `force` allows the mode IMPORT although schemas are registered."""
        return str(self._send("PUT", "/mode", _query(force=force), {"mode": mode})["mode"])

    def get_contexts(self, offset: int = 0, limit: int = -1) -> list[str]:
        """Returns the names of the registry's contexts.

        Skips the first `offset` names, and returns at most `limit` of the rest (-1: all).
        """
        return list(self._send("GET", "/contexts", _query(offset=offset, limit=limit)))

    def get_associations_by_resource_name(
        self,
        resource_name: str,
        resource_namespace: str,
        resource_type: str | None = None,
        association_types: list[str] | None = None,
        offset: int = 0,
        limit: int = -1,
    ) -> list[Association]:
        """Returns the associations between a resource, such as a topic, and subjects.

        `resource_type` and `association_types` select associations; None selects all. Skips the first `offset`
        associations, and returns at most `limit` of the rest (-1: all). The registry of kafkapy does not support
        associations.
        """
        path = f"/associations/resources/{quote(resource_namespace, safe='')}/{quote(resource_name, safe='')}"
        query: dict[str, Any] = _query(resourceType=resource_type, offset=offset, limit=limit)
        found = self._send("GET", path, query | ({"associationType": association_types} if association_types else {}))
        return [Association.from_dict(each) for each in found]

    def create_association(self, request: AssociationCreateOrUpdateRequest) -> AssociationResponse:
        """Associates subjects with a resource."""
        return AssociationResponse.from_dict(self._send("POST", "/associations", {}, request.to_dict()))

    def delete_associations(
        self,
        resource_id: str,
        resource_type: str | None = None,
        association_types: list[str] | None = None,
        cascade_lifecycle: bool = False,
    ) -> None:
        """Deletes the associations of a resource, or only those whose types are in `association_types`.

        `cascade_lifecycle` asks the registry to apply the lifecycle of the associations to the dependent schemas, too.
        """
        query: dict[str, Any] = _query(resourceType=resource_type, cascadeLifecycle=cascade_lifecycle)
        query |= {"associationType": association_types} if association_types else {}
        self._send("DELETE", f"/associations/resources/{quote(resource_id, safe='')}", query)

    def clear_latest_caches(self) -> None:
        """Removes the latest versions from the cache, so that they are requested again."""
        self._latest.clear()

    def clear_caches(self) -> None:
        """Drops all cached schemas."""
        self.clear_latest_caches()
        self.registry.forget()

    @staticmethod
    def new_client(conf: Mapping[str, Any]) -> SchemaRegistryClient:
        """Returns a client with this configuration, as the constructor does."""
        return SchemaRegistryClient(conf)

    def _send(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> Any:
        with refusals():
            return self.registry.request(method, path, query, body)

    def _cached(self, find: Callable[[], RegisteredSchema], *key: str | None) -> RegisteredSchema:
        """Returns the latest version that is in the cache under `key`.

        If no version is in the cache, or it has expired, calls `find`, which requests the version from the registry,
        and puts the result into the cache.
        """
        name = tuple(each or "" for each in key)
        now = time.monotonic()
        known = self._latest.get(name)
        if known is None or now >= known.end:
            end = inf if self._latest_ttl_s is None else now + self._latest_ttl_s
            known = self._latest.put(name, _Latest(find(), end))
        return known.version


@contextmanager
def refusals() -> Iterator[None]:
    """Returns a context manager that converts each RegistryFailure to an exception of confluent-kafka.

    This is SchemaRegistryError for a refused request, and OSError if the registry cannot be reached.
    """
    try:
        yield
    except RegistryFailure as error:
        if error.status < 0:
            raise OSError(str(error)) from error
        raise SchemaRegistryError(error.status, error.code, str(error)) from error


def _subject(name: str) -> str:
    return f"/subjects/{quote(name, safe='')}"


def _place(setting: str, subject: str | None) -> str:
    return f"/{setting}" if subject is None else f"/{setting}/{quote(subject, safe='')}"


def _query(**values: Any) -> dict[str, str]:
    """Returns the parameters of a request as text, without those whose value is None, False, 0 or -1."""
    found: dict[str, str] = {}
    for name, value in values.items():
        if value is True:
            found[name] = "true"
        elif value not in (None, False, 0, -1):
            found[name] = str(value)
    return found


def _tls(conf: Mapping[str, Any]) -> ssl.SSLContext | None:
    """Returns the TLS context for the registry; None if `conf` sets neither a certificate nor certificate authorities.

    None means the certificate authorities that the machine trusts. If `ssl.ca.location` is False, the certificate of
    the registry is not checked. Raises ValueError for a key without a certificate.
    """
    certificate, authority = conf.get("ssl.certificate.location"), conf.get("ssl.ca.location")
    if not certificate and authority in (None, ""):
        if conf.get("ssl.key.location") or conf.get("ssl.key.password"):
            raise ValueError("ssl.certificate.location is required with ssl.key.location or ssl.key.password")
        return None
    if authority and Path(authority).is_dir():
        context = ssl.create_default_context(capath=authority)
    else:
        context = ssl.create_default_context(cafile=authority or None)
    if authority is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate, conf.get("ssl.key.location"), conf.get("ssl.key.password"))
    return context
