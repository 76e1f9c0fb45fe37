"""The part of the HTTP API (version 3) of Apicurio Registry that Apicurio's serializers for Kafka use.

An artifact in Apicurio's group `default` corresponds to a subject of this registry. The global id and the content id of
an artifact's version are both the id of the schema that this registry stores for the version.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kafkapy.client.schema.model import AVRO, PROTOBUF, SCHEMA_TYPES, Schema, SchemaReference
from kafkapy.decimal_text import is_number
from kafkapy.http.json_api import JSON_TYPE, RequestRefused, json_body, media_type
from kafkapy.registry import errors, requests
from kafkapy.registry.model import DEFAULT_CONTEXT, LATEST_NUMBER, Version
from kafkapy.registry.service import RegistryService

API_PATH = "/apis/registry/v3"
_DEFAULT_GROUP = "default"
_LATEST = ("branch=latest", "latest")
# What is done if the artifact exists. The last two find the version that has the schema, and otherwise create it.
_FAIL = "FAIL"
_IF_EXISTS = (_FAIL, "CREATE_VERSION", "FIND_OR_CREATE_VERSION")

Handler = Callable[[Request], Awaitable[Response]]
Write = Callable[[Callable[[], Version]], Awaitable[Version]]


class ApicurioApi:
    """The handlers of the requests. `write` runs an operation on the thread that executes the registry's writes."""

    def __init__(self, service: RegistryService, write: Write) -> None:
        self._service = service
        self._store = service.store
        self._write = write

    def routes(self, writing: Callable[[Handler], Handler]) -> Sequence[Route]:
        """Returns the routes below API_PATH.

        `writing` wraps each handler that writes, so that only the elected instance executes the handler.
        """
        artifacts = "/groups/{group}/artifacts"
        version = f"{artifacts}/{{artifact}}/versions/{{version}}"
        get: dict[str, Handler] = {
            "/ids/globalIds/{id}": self.content_of_id,
            "/ids/globalIds/{id}/references": self.references_of_id,
            "/ids/contentIds/{id}": self.content_of_id,
            "/ids/contentIds/{id}/references": self.references_of_id,
            version: self.version,
            f"{version}/content": self.content,
            f"{version}/references": self.references,
        }
        found = [Route(path, _with_problems(handler), methods=["GET"]) for path, handler in get.items()]
        found.append(Route("/search/versions", _with_problems(self.search), methods=["POST"]))
        found.append(Route(artifacts, _with_problems(writing(self.create)), methods=["POST"]))
        return found

    async def create(self, request: Request) -> Response:
        """Registers the first version of a new artifact, or a further version of an existing artifact.

        An existing artifact is refused unless the parameter `ifExists` of the query permits it.
        """
        _check_group(request)
        if_exists = request.query_params.get("ifExists", _FAIL)
        if if_exists not in _IF_EXISTS:
            raise errors.RegistryError(400, f"ifExists is one of {', '.join(_IF_EXISTS)}, not {if_exists}")
        body = await json_body(request, (JSON_TYPE,), JSON_TYPE)
        subject, schema = body.get("artifactId"), _schema_of(body)
        if not isinstance(subject, str) or not subject:
            raise errors.RegistryError(400, "the field `artifactId` is missing")

        def operation() -> Version:
            if if_exists == _FAIL and self._store.versions(subject):
                raise errors.RegistryError(409, f"An artifact with ID '{subject}' already exists.")
            return self._service.register(subject, schema)

        version = await self._write(operation)
        artifact = {"groupId": _DEFAULT_GROUP, "artifactId": subject, "artifactType": version.schema.type}
        return _answer({"artifact": artifact, "version": _metadata(version)})

    async def search(self, request: Request) -> Response:
        """Finds the versions of an artifact, or of all artifacts, that have the schema in the body."""
        _check_group(request)
        text = (await request.body()).decode("utf-8", "replace")
        subject = request.query_params.get("artifactId")
        kind = request.query_params.get("artifactType") or (PROTOBUF if "protobuf" in media_type(request) else None)
        found: list[Version] = []
        for each in self._store.subjects() if subject is None else [subject]:
            for version in self._store.versions(each):
                if kind in (None, version.schema.type) and self._has_text(version, text):
                    found.append(version)
        if request.query_params.get("order") == "desc":
            found.reverse()
        limit = requests.number(request, "limit", 20)
        return _answer({"count": len(found), "versions": [_metadata(each) for each in found[: max(0, limit)]]})

    def _has_text(self, version: Version, text: str) -> bool:
        try:
            return self._service.parse(version.schema._replace(text=text))[1].text == version.schema.text
        except RequestRefused:  # a text of another type
            return False

    async def version(self, request: Request) -> Response:
        return _answer(_metadata(self._version(request)))

    async def content(self, request: Request) -> Response:
        return _content(self._version(request))

    async def references(self, request: Request) -> Response:
        return _references(self._version(request))

    async def content_of_id(self, request: Request) -> Response:
        return _content(self._with_id(request))

    async def references_of_id(self, request: Request) -> Response:
        return _references(self._with_id(request))

    def _version(self, request: Request) -> Version:
        _check_group(request)
        text = unquote(request.path_params["version"])
        if text not in _LATEST and not is_number(text):
            raise errors.version_not_found(text)
        number = LATEST_NUMBER if text in _LATEST else int(text)
        return self._service.version(unquote(request.path_params["artifact"]), number)

    def _with_id(self, request: Request) -> Version:
        schema_id = requests.id_of(request)
        found = self._store.with_id(DEFAULT_CONTEXT, schema_id)
        if not found:
            raise errors.schema_not_found(schema_id)
        return min(found)


def _with_problems(handler: Handler) -> Handler:
    """Returns a handler whose refusals have the form of Apicurio's registry: RFC 9457."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except RequestRefused as error:
            problem = {"title": error.message, "status": error.status, "detail": error.message, "name": "Refused"}
            return _answer(problem, error.status)

    return handle


def _answer(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content, ensure_ascii=False), status, media_type=JSON_TYPE)


def _check_group(request: Request) -> None:
    group = unquote(request.path_params.get("group") or request.query_params.get("groupId") or _DEFAULT_GROUP)
    if group != _DEFAULT_GROUP:
        raise errors.RegistryError(
            404, f"No group '{group}' was found: this registry has the group '{_DEFAULT_GROUP}' only."
        )


def _schema_of(body: dict[str, Any]) -> Schema:
    first, kind = body.get("firstVersion"), body.get("artifactType") or AVRO
    content = first.get("content") if isinstance(first, dict) else None
    text = content.get("content") if isinstance(content, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise errors.RegistryError(400, "the field `firstVersion.content.content` is missing or empty")
    if kind not in SCHEMA_TYPES:
        raise errors.RegistryError(400, f"artifactType is one of {', '.join(SCHEMA_TYPES)}, not {kind}")
    assert isinstance(content, dict)
    references = content.get("references")
    if not isinstance(references, list | None):
        raise errors.RegistryError(400, "the field `references` is not an array")
    return Schema(text, kind, tuple(map(_reference, references or ())))


def _reference(value: Any) -> SchemaReference:
    if isinstance(value, dict):
        name, subject, version = value.get("name"), value.get("artifactId"), str(value.get("version"))
        if isinstance(name, str) and isinstance(subject, str) and is_number(version):
            return SchemaReference(name, subject, int(version))
    raise errors.RegistryError(400, "a reference has `name`, `artifactId` and the number `version`")


def _metadata(version: Version) -> dict[str, Any]:
    return {
        "version": str(version.number),
        "globalId": version.id,
        "contentId": version.id,
        "groupId": _DEFAULT_GROUP,
        "artifactId": version.subject,
        "artifactType": version.schema.type,
        "state": "ENABLED",
    }


def _content(version: Version) -> Response:
    kind = "application/x-protobuf" if version.schema.type == PROTOBUF else JSON_TYPE
    return Response(version.schema.text, media_type=kind)


def _references(version: Version) -> Response:
    return _answer(
        [
            {"name": each.name, "groupId": _DEFAULT_GROUP, "artifactId": each.subject, "version": str(each.version)}
            for each in version.schema.references
        ]
    )
