"""The HTTP API of the registry: Confluent's paths, parameters and bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kafkapy import __version__
from kafkapy.client.schema.model import SCHEMA_TYPES
from kafkapy.http.json_api import JSON_TYPE, JsonResponses, with_raw_paths
from kafkapy.registry import apicurio, errors, requests
from kafkapy.registry.election import Election
from kafkapy.registry.forwarding import Forwarder
from kafkapy.registry.model import LATEST_NUMBER, LEVEL_FIELD, Version, context_of, normalized_subject
from kafkapy.registry.requests import flag, required_subject, schema_of, subject_of, version_of
from kafkapy.registry.service import RegistryService
from kafkapy.registry.topic import Fenced

CONTENT_TYPE = requests.JSON_TYPES[0]
Result = TypeVar("Result")
Handler = Callable[[Request], Awaitable[Response]]


JSON = JsonResponses(CONTENT_TYPE)
answer, refuse = JSON.answer, JSON.refuse


class RegistryApi:
    """The handlers of the API's requests. Requests that read are answered from the store of this instance.

    Requests that write are handled one at a time by the elected instance, to which the other instances forward them.
    """

    def __init__(self, service: RegistryService, election: Election, forwarder: Forwarder, timeout_s: float) -> None:
        self._service = service
        self._store = service.store
        self._election = election
        self._forwarder = forwarder
        self._timeout_s = timeout_s
        self._writer = ThreadPoolExecutor(1, "registry-writer")
        self._waiting = ThreadPoolExecutor(32, "registry-forward")

    def application(self) -> ASGIApp:
        """Returns the ASGI application."""
        routes = self._routes()
        app = Starlette(
            routes=[
                *routes,
                Mount("/contexts/{context}", routes=routes),
                Mount(apicurio.API_PATH, routes=self._apicurio()),
            ],
            exception_handlers=JSON.handlers(),
        )
        return with_raw_paths(_with_accepted_type(app))

    def close(self) -> None:
        """Ends the threads; operations that have not begun are cancelled."""
        self._writer.shutdown(wait=False, cancel_futures=True)
        self._waiting.shutdown(wait=False, cancel_futures=True)

    def _routes(self) -> list[BaseRoute]:
        versions = "/subjects/{subject}/versions"
        get: dict[str, Handler] = {
            "/": self.root,
            "/contexts": self.contexts,
            "/subjects": self.subjects,
            versions: self.versions,
            f"{versions}/{{version}}": self.version,
            f"{versions}/{{version}}/schema": self.version_text,
            f"{versions}/{{version}}/referencedby": self.referenced_by,
            "/subjects/{subject}/metadata": self.with_metadata,
            "/schemas": self.schemas,
            "/schemas/types": self.types,
            "/schemas/ids/{id}": self.schema,
            "/schemas/ids/{id}/schema": self.schema_text,
            "/schemas/ids/{id}/subjects": self.subjects_of_id,
            "/schemas/ids/{id}/versions": self.versions_of_id,
            "/schemas/guids/{guid}": self.schema_of_guid,
            "/schemas/guids/{guid}/ids": self.ids_of_guid,
            "/config": self.get_config,
            "/config/{subject}": self.get_config,
            "/mode": self.get_mode,
            "/mode/{subject}": self.get_mode,
            "/v1/metadata/id": self.metadata_id,
            "/v1/metadata/version": self.metadata_version,
            "/master_available": self.master_available,
            "/_health": self.health,
        }
        checks = "/compatibility/subjects/{subject}/versions"
        post: dict[str, Handler] = {
            "/subjects/{subject}": self.look_up,
            checks: self.check,
            f"{checks}/{{version}}": self.check,
        }
        writes: list[tuple[str, str, Handler]] = [
            ("POST", versions, self.register),
            ("DELETE", "/subjects/{subject}", self.delete_subject),
            ("DELETE", f"{versions}/{{version}}", self.delete_version),
            ("PUT", "/config", self.put_config),
            ("PUT", "/config/{subject}", self.put_config),
            ("DELETE", "/config", self.delete_config),
            ("DELETE", "/config/{subject}", self.delete_config),
            ("PUT", "/mode", self.put_mode),
            ("PUT", "/mode/{subject}", self.put_mode),
            ("DELETE", "/mode/{subject}", self.delete_mode),
        ]
        methods: dict[str, dict[str, Handler]] = {}
        for path, handler in get.items():
            methods.setdefault(path, {})["GET"] = handler
        for path, handler in post.items():
            methods.setdefault(path, {})["POST"] = handler
        for method, path, handler in writes:
            methods.setdefault(path, {})[method] = self._writing(handler)
        return [Route(path, _by_method(handlers), methods=list(handlers)) for path, handlers in methods.items()]

    def _apicurio(self) -> Sequence[BaseRoute]:
        return apicurio.ApicurioApi(self._service, self._write).routes(self._writing)

    # Writing

    def _writing(self, handler: Handler) -> Handler:
        """Wraps the handler of a request that writes.

        The returned handler calls `handler` if this instance is the writer, and otherwise forwards the request to the
        writer.
        """

        async def forward_or_handle(request: Request) -> Response:
            await request.body()
            loop = asyncio.get_running_loop()
            is_forwarded = self._forwarder.is_forwarded(request)
            for _ in range(2):  # the writer may change while the request is under way
                url = await loop.run_in_executor(self._waiting, self._election.await_leader, self._timeout_s)
                if url is None:
                    raise errors.unknown_leader()
                if not self._election.is_leader:
                    if is_forwarded:
                        raise errors.unknown_leader()
                    return await self._forwarder.forward(request, url, self._waiting)
                try:
                    return await handler(request)
                except Fenced:
                    self._election.resign()
            raise errors.unknown_leader()

        return forward_or_handle

    async def _write(self, operation: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._writer, operation)

    async def register(self, request: Request) -> Response:
        subject, body = required_subject(request), await requests.body_object(request)
        schema = schema_of(body)
        schema_id, number = requests.optional_number(body, "id"), requests.optional_number(body, "version")
        normalize = flag(request, "normalize") or bool(self._service.config(subject).get("normalize"))

        def operation() -> Version:
            return self._service.register(subject, schema, schema_id=schema_id, number=number, normalize=normalize)

        version = await self._write(operation)
        fields = {"id": version.id, "version": version.number, "guid": version.schema.guid}
        return answer({**fields, **version.schema.as_json()})

    async def delete_subject(self, request: Request) -> Response:
        subject, permanent = required_subject(request), flag(request, "permanent")
        return answer(await self._write(lambda: self._service.delete_subject(subject, permanent=permanent)))

    async def delete_version(self, request: Request) -> Response:
        subject, number, permanent = required_subject(request), version_of(request), flag(request, "permanent")
        return answer(await self._write(lambda: self._service.delete_version(subject, number, permanent=permanent)))

    async def put_config(self, request: Request) -> Response:
        subject, body = subject_of(request), await requests.body_object(request)
        await self._write(lambda: self._service.set_config(subject, body))
        if isinstance(body.get("compatibility"), str):
            body["compatibility"] = body["compatibility"].upper()
        return answer(body)

    async def delete_config(self, request: Request) -> Response:
        subject = subject_of(request)
        deleted = await self._write(lambda: self._service.delete_config(subject))
        # Confluent's registry has the level under the first name; franz-go's client expects the second one.
        return answer(deleted if LEVEL_FIELD not in deleted else {**deleted, "compatibility": deleted[LEVEL_FIELD]})

    async def put_mode(self, request: Request) -> Response:
        subject, body, force = subject_of(request), await requests.body_object(request), flag(request, "force")
        mode = await self._write(lambda: self._service.set_mode(subject, body.get("mode"), force=force))
        return answer({"mode": mode.value})

    async def delete_mode(self, request: Request) -> Response:
        subject = required_subject(request)
        return answer({"mode": await self._write(lambda: self._service.delete_mode(subject))})

    # Reading

    async def root(self, request: Request) -> Response:
        return answer({})

    async def contexts(self, request: Request) -> Response:
        return answer(self._store.contexts())

    async def subjects(self, request: Request) -> Response:
        found = self._store.subjects(deleted=flag(request, "deleted") or flag(request, "deletedOnly"))
        if flag(request, "deletedOnly"):
            found = [each for each in found if not self._store.versions(each)]
        return answer(_page(request, [each for each in found if self._is_wanted(request, each)]))

    def _is_wanted(self, request: Request, subject: str) -> bool:
        """Returns whether a list of subjects, which the request asks for, contains `subject`.

        If the path names a context, the subject must be in this context. If the query has the parameter
        `subjectPrefix`, the subject must begin with it.
        """
        context = request.path_params.get("context")
        if context is not None and context_of(subject) != "." + context.strip(":").lstrip("."):
            return False
        prefix = normalized_subject(request.query_params.get("subjectPrefix", ":*:"))
        return prefix == ":*:" or subject.startswith(prefix)

    async def versions(self, request: Request) -> Response:
        subject, deleted_only = required_subject(request), flag(request, "deletedOnly")
        found = self._store.versions(subject, deleted=flag(request, "deleted") or deleted_only)
        numbers = [each.number for each in found if each.is_deleted or not deleted_only]
        if not numbers:
            raise errors.subject_not_found(subject)
        return answer(_page(request, numbers))

    async def version(self, request: Request) -> Response:
        found = self._service.version(required_subject(request), version_of(request), deleted=flag(request, "deleted"))
        return answer(found.as_json())

    async def version_text(self, request: Request) -> Response:
        found = self._service.version(required_subject(request), version_of(request), deleted=flag(request, "deleted"))
        return Response(found.schema.text, media_type=CONTENT_TYPE)

    async def referenced_by(self, request: Request) -> Response:
        version = self._service.version(required_subject(request), version_of(request), deleted=True)
        return answer([each.id for each in self._store.referrers(version.subject, version.number)])

    async def with_metadata(self, request: Request) -> Response:
        subject = required_subject(request)
        wanted = dict(zip(request.query_params.getlist("key"), request.query_params.getlist("value"), strict=False))
        for version in reversed(self._store.versions(subject, deleted=flag(request, "deleted"))):
            properties = (version.schema.metadata or {}).get("properties") or {}
            if wanted.items() <= properties.items():
                return answer(version.as_json())
        raise errors.subject_not_found(subject)

    async def schemas(self, request: Request) -> Response:
        found: list[Version] = []
        for subject in self._store.subjects(deleted=flag(request, "deleted")):
            if self._is_wanted(request, subject):
                versions = self._store.versions(subject, deleted=flag(request, "deleted"))
                found += versions[-1:] if flag(request, "latestOnly") else versions
        return answer([each.as_json() for each in _page(request, found)])

    async def types(self, request: Request) -> Response:
        return answer(sorted(SCHEMA_TYPES, reverse=True))

    async def schema(self, request: Request) -> Response:
        version = self._with_id(request)[0]
        fields = version.schema.as_json()
        if flag(request, "fetchMaxId"):
            fields["maxId"] = self._store.next_id(context_of(version.subject)) - 1
        return answer({"guid": version.schema.guid, **fields})

    async def schema_text(self, request: Request) -> Response:
        return Response(self._with_id(request)[0].schema.text, media_type=CONTENT_TYPE)

    async def subjects_of_id(self, request: Request) -> Response:
        found = self._not_deleted(request, self._with_id(request))
        return answer(_page(request, sorted({each.subject for each in found})))

    async def versions_of_id(self, request: Request) -> Response:
        found = self._not_deleted(request, self._with_id(request))
        return answer(_page(request, [{"subject": each.subject, "version": each.number} for each in found]))

    async def schema_of_guid(self, request: Request) -> Response:
        guid = request.path_params["guid"]
        schema = self._store.with_guid(guid)
        if schema is None:
            raise errors.schema_not_found(guid)
        return answer({"guid": schema.guid, **schema.as_json()})

    async def ids_of_guid(self, request: Request) -> Response:
        guid = request.path_params["guid"]
        schema = self._store.with_guid(guid)
        if schema is None:
            raise errors.schema_not_found(guid)
        ids = ((context, self._store.id_of(context, schema)) for context in self._store.contexts())
        return answer([{"context": context, "id": each} for context, each in ids if each is not None])

    def _with_id(self, request: Request) -> list[Version]:
        """Returns the versions whose schema has the id in the request's path, sorted.

        The context is that of the path or of the query's parameter `subject`. If both are absent it is the default
        context, or every context if the default one lacks the id. Raises RegistryError if there is no such version.
        """
        schema_id = requests.id_of(request)
        context = request.path_params.get("context")
        subject = requests.subject_of_query(request)
        place = "." + context.strip(":").lstrip(".") if context is not None else context_of(subject)
        found = self._store.with_id(place, schema_id)
        if not found and place == "." and not subject:
            found = self._store.with_id_in_any_context(schema_id)
        if not found:
            raise errors.schema_not_found(schema_id)
        return sorted(found)

    @staticmethod
    def _not_deleted(request: Request, versions: list[Version]) -> list[Version]:
        return [each for each in versions if flag(request, "deleted") or not each.is_deleted]

    async def look_up(self, request: Request) -> Response:
        subject, schema = required_subject(request), schema_of(await requests.body_object(request))
        normalize = flag(request, "normalize") or bool(self._service.config(subject).get("normalize"))
        found = self._service.look_up(subject, schema, deleted=flag(request, "deleted"), normalize=normalize)
        return answer(found.as_json())

    async def check(self, request: Request) -> Response:
        subject, schema = required_subject(request), schema_of(await requests.body_object(request))
        number = version_of(request) if "version" in request.path_params else None
        if number is not None and not self._store.versions(subject):
            if number != LATEST_NUMBER:
                raise errors.version_not_found(number)
            number = None  # there is nothing to compare with
        messages = self._service.incompatibilities(subject, schema, number, normalize=flag(request, "normalize"))
        result: dict[str, Any] = {"is_compatible": not messages}
        if flag(request, "verbose"):
            result["messages"] = messages
        return answer(result)

    async def get_config(self, request: Request) -> Response:
        subject = subject_of(request)
        if subject is None or flag(request, "defaultToGlobal"):
            return answer(self._service.config(subject))
        found = self._store.config(subject)
        if found is None or LEVEL_FIELD not in found:
            raise errors.no_compatibility_of_subject(subject)
        return answer(found)

    async def get_mode(self, request: Request) -> Response:
        subject = subject_of(request)
        if subject is None or flag(request, "defaultToGlobal"):
            return answer({"mode": self._service.mode(subject).value})
        found = self._store.mode(subject)
        if found is None:
            raise errors.no_mode_of_subject(subject)
        return answer({"mode": found})

    async def metadata_id(self, request: Request) -> Response:
        return answer({"scope": {"path": [], "clusters": {}}, "id": ""})

    async def metadata_version(self, request: Request) -> Response:
        return answer({"version": __version__, "commitId": ""})

    # Paths of Karapace, which its deployments poll

    async def master_available(self, request: Request) -> Response:
        response = answer({"master_available": self._election.leader_url is not None}, media_type=JSON_TYPE)
        response.headers["cache-control"] = "no-store, no-cache, must-revalidate"
        return response

    async def health(self, request: Request) -> Response:
        url = self._election.leader_url
        status = {"schema_registry_is_primary": self._election.is_leader, "schema_registry_primary_url": url}
        return answer({"healthy": True, "status": {"schema_registry_ready": True, **status}}, media_type=JSON_TYPE)


def _page(request: Request, found: list[Result]) -> list[Result]:
    offset, limit = requests.number(request, "offset", 0), requests.number(request, "limit", -1)
    return found[max(offset, 0) :] if limit < 0 else found[max(offset, 0) : max(offset, 0) + limit]


def _by_method(handlers: dict[str, Handler]) -> Handler:
    async def handle(request: Request) -> Response:
        return await handlers["GET" if request.method == "HEAD" else request.method](request)

    return handle


def _with_accepted_type(app: ASGIApp) -> ASGIApp:
    """Returns an ASGI application whose responses with JSON have the first content type that the client accepts."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope.get("headers", ()) if scope["type"] == "http" else ()
        accepted = ",".join(value.decode("latin-1") for name, value in headers if name == b"accept")
        types = (each.partition(";")[0].strip().lower() for each in accepted.split(","))
        wanted = next((each for each in types if each in requests.JSON_TYPES), CONTENT_TYPE)

        async def send_as_wanted(message: Message) -> None:
            if message["type"] == "http.response.start":
                default = (b"content-type", CONTENT_TYPE.encode())
                found = [(b"content-type", wanted.encode()) if each == default else each for each in message["headers"]]
                message = {**message, "headers": found}
            await send(message)

        await app(scope, receive, send_as_wanted)

    return call
