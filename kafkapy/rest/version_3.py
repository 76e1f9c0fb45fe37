"""Version 3 of the REST API: clusters, brokers, topics, their configurations, and records."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from kafkapy.client import RecordMetadata
from kafkapy.client.admin import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicDescription,
)
from kafkapy.client.schema.subject_names import KEY, VALUE
from kafkapy.config.row import INT_MAX, ConfigSource
from kafkapy.http.json_api import (
    JSON_TYPE,
    JsonResponses,
    RequestRefused,
    check_texts,
    finite_number,
    json_body,
    json_bytes,
    media_type,
    refuse_constant,
)
from kafkapy.rest import errors
from kafkapy.rest.cluster import ClusterClients, Record
from kafkapy.rest.formats import AVRO, BINARY, JSON, JSON_SCHEMA, TEXT, Formats

JSON_RESPONSES = JsonResponses(JSON_TYPE)
answer = JSON_RESPONSES.answer
# The types of a key or value -> the form in which they are embedded.
_FORMS = {"BINARY": BINARY, "JSON": JSON, "STRING": TEXT, "AVRO": AVRO, "JSONSCHEMA": JSON_SCHEMA}

_SHORT_MAX = 2**15 - 1
_END: Any = object()  # marks the end of a body; a JSON null is None


class VersionThree:
    """The handlers of version 3."""

    def __init__(self, clients: ClusterClients, formats: Formats) -> None:
        self._clients = clients
        self._formats = formats
        self._cluster_id = ""

    def routes(self) -> list[Route]:
        """Returns the routes of version 3 for the web framework: the path, the HTTP method and the handler of each
        request.
        """
        cluster = "/v3/clusters/{cluster}"
        topic = f"{cluster}/topics/{{topic}}"
        table: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("GET", "/v3/clusters", self.clusters),
            ("GET", cluster, self.cluster),
            ("GET", f"{cluster}/brokers", self.brokers),
            ("GET", f"{cluster}/brokers/{{broker}}", self.broker),
            ("GET", f"{cluster}/topics", self.topics),
            ("POST", f"{cluster}/topics", self.create_topic),
            ("GET", topic, self.topic),
            ("DELETE", topic, self.delete_topic),
            ("GET", f"{topic}/partitions", self.partitions),
            ("GET", f"{topic}/partitions/{{partition}}", self.partition),
            ("GET", f"{topic}/configs", self.configs),
            ("GET", f"{topic}/configs/{{name}}", self.config),
            ("PUT", f"{topic}/configs/{{name}}", self.set_config),
            ("DELETE", f"{topic}/configs/{{name}}", self.reset_config),
            ("POST", f"{topic}/configs:alter", self.alter_configs),
        ]
        routes = [Route(path, _with_codes(handler), methods=[method]) for method, path, handler in table]
        return [*routes, Route(f"{topic}/records", self.produce, methods=["POST"])]

    # Clusters and brokers

    async def clusters(self, request: Request) -> Response:
        return self._list(request, "KafkaClusterList", [await self._shown_cluster(request)])

    async def cluster(self, request: Request) -> Response:
        await self._check_cluster(request)
        return answer(await self._shown_cluster(request))

    async def _shown_cluster(self, request: Request) -> dict[str, Any]:
        description = await self._clients.run(self._clients.admin.describe_cluster)
        self._cluster_id = description.cluster_id or ""
        place = f"/v3/clusters/{self._cluster_id}"
        controller = description.controller.node_id if description.controller is not None else -1
        return {
            **_head(request, "KafkaCluster", place, f"kafka={self._cluster_id}"),
            "cluster_id": self._cluster_id,
            "controller": _link(request, f"{place}/brokers/{controller}"),
            "acls": _link(request, f"{place}/acls"),
            "brokers": _link(request, f"{place}/brokers"),
            "broker_configs": _link(request, f"{place}/broker-configs"),
            "consumer_groups": _link(request, f"{place}/consumer-groups"),
            "topics": _link(request, f"{place}/topics"),
            "partition_reassignments": _link(request, f"{place}/topics/-/partitions/-/reassignment"),
        }

    async def brokers(self, request: Request) -> Response:
        return self._list(request, "KafkaBrokerList", await self._shown_brokers(request))

    async def broker(self, request: Request) -> Response:
        for each in await self._shown_brokers(request):
            if str(each["broker_id"]) == request.path_params["broker"]:
                return answer(each)
        raise RequestRefused(404, "HTTP 404 Not Found")

    async def _shown_brokers(self, request: Request) -> list[dict[str, Any]]:
        cluster = await self._check_cluster(request)
        description = await self._clients.run(self._clients.admin.describe_cluster)
        found = []
        for each in description.brokers:
            place = f"/v3/clusters/{cluster}/brokers/{each.node_id}"
            found.append(
                {
                    **_head(request, "KafkaBroker", place, f"kafka={cluster}/broker={each.node_id}"),
                    "cluster_id": cluster,
                    "broker_id": each.node_id,
                    "host": each.host,
                    "port": each.port,
                    "rack": each.rack,
                    "configs": _link(request, f"{place}/configs"),
                    "partition_replicas": _link(request, f"{place}/partition-replicas"),
                }
            )
        return found

    async def _check_cluster(self, request: Request) -> str:
        """Returns the id of the cluster. Raises RequestRefused if the path of the request names another cluster."""
        if not self._cluster_id:
            description = await self._clients.run(self._clients.admin.describe_cluster)
            self._cluster_id = description.cluster_id or ""
        if unquote(request.path_params["cluster"]) != self._cluster_id:
            raise RequestRefused(404, f"Cluster {request.path_params['cluster']} cannot be found.")
        return self._cluster_id

    # Topics

    async def topics(self, request: Request) -> Response:
        cluster = await self._check_cluster(request)
        found = await self._clients.run(lambda: self._clients.admin.describe_topics().check())
        return self._list(
            request, "KafkaTopicList", [_shown_topic(request, cluster, found[name]) for name in sorted(found)]
        )

    async def topic(self, request: Request) -> Response:
        cluster = await self._check_cluster(request)
        return answer(_shown_topic(request, cluster, await self._described(request)))

    async def _described(self, request: Request) -> TopicDescription:
        return await self._clients.describe(_topic(request), is_fresh=True)

    async def create_topic(self, request: Request) -> Response:
        cluster = await self._check_cluster(request)
        body = await json_body(request, (JSON_TYPE,), JSON_TYPE)
        name, configs = body.get("topic_name"), body.get("configs") or []
        partitions, factor = body.get("partitions_count", -1), body.get("replication_factor", -1)
        are_numbers = _is_number(partitions, INT_MAX) and _is_number(factor, _SHORT_MAX)
        if not isinstance(name, str) or not are_numbers:
            raise errors.unprocessable(
                "`topic_name` is a required string, `partitions_count` and `replication_factor` are numbers"
            )
        if not isinstance(configs, list) or not all(isinstance(each, dict) and "name" in each for each in configs):
            raise errors.unprocessable("`configs` must be an array of objects with `name` and `value`")
        values = {str(each["name"]): _config_value(each.get("value")) for each in configs}
        topic = NewTopic(name, partitions, factor, configs=values)
        validate_only = bool(body.get("validate_only", False))
        created = await self._clients.run(
            lambda: self._clients.admin.create_topics([topic], validate_only=validate_only).check()
        )
        self._clients.forget(name)
        if validate_only:
            return answer({"topic_name": name, "partitions_count": created[name].partitions})
        description = await self._clients.describe(name, is_fresh=True)
        return answer(_shown_topic(request, cluster, description), 201)

    async def delete_topic(self, request: Request) -> Response:
        await self._check_cluster(request)
        name = _topic(request)
        await self._clients.run(lambda: self._clients.admin.delete_topics([name]).check())
        self._clients.forget(name)
        return Response(status_code=204)

    async def partitions(self, request: Request) -> Response:
        return self._list(request, "KafkaPartitionList", await self._shown_partitions(request))

    async def partition(self, request: Request) -> Response:
        for each in await self._shown_partitions(request):
            if str(each["partition_id"]) == request.path_params["partition"]:
                return answer(each)
        raise errors.partition_not_found()

    async def _shown_partitions(self, request: Request) -> list[dict[str, Any]]:
        cluster = await self._check_cluster(request)
        description = await self._described(request)
        found = []
        for each in description.partitions:
            place = f"/v3/clusters/{cluster}/topics/{quote(description.name)}/partitions/{each.partition}"
            crn = f"kafka={cluster}/topic={description.name}/partition={each.partition}"
            found.append(
                {
                    **_head(request, "KafkaPartition", place, crn),
                    "cluster_id": cluster,
                    "topic_name": description.name,
                    "partition_id": each.partition,
                    "leader": _link(request, f"{place}/replicas/{each.leader}"),
                    "replicas": _link(request, f"{place}/replicas"),
                    "reassignment": _link(request, f"{place}/reassignment"),
                }
            )
        return found

    # Configurations

    async def configs(self, request: Request) -> Response:
        cluster, entries = await self._entries(request)
        shown = [_shown_config(request, cluster, _topic(request), each) for each in entries.values()]
        return self._list(request, "KafkaTopicConfigList", shown)

    async def config(self, request: Request) -> Response:
        cluster, entries = await self._entries(request)
        name = unquote(request.path_params["name"])
        if name not in entries:
            raise RequestRefused(404, f"Config {name} cannot be found.")
        return answer(_shown_config(request, cluster, _topic(request), entries[name]))

    async def _entries(self, request: Request) -> tuple[str, dict[str, ConfigEntry]]:
        cluster = await self._check_cluster(request)
        resource = ConfigResource(ResourceType.TOPIC, _topic(request))
        admin = self._clients.admin
        return cluster, await self._clients.run(
            lambda: admin.describe_configs([resource], include_synonyms=True)[resource]
        )

    async def set_config(self, request: Request) -> Response:
        body = await json_body(request, (JSON_TYPE,), JSON_TYPE)
        value = body.get("value")
        if not isinstance(value, str):
            raise errors.unprocessable("`value` must be a string")
        name = unquote(request.path_params["name"])
        return await self._alter(request, [ConfigChange(name, value, ConfigOperation.SET)])

    async def reset_config(self, request: Request) -> Response:
        name = unquote(request.path_params["name"])
        return await self._alter(request, [ConfigChange(name, None, ConfigOperation.DELETE)])

    async def alter_configs(self, request: Request) -> Response:
        body = await json_body(request, (JSON_TYPE,), JSON_TYPE)
        data = body.get("data")
        if not isinstance(data, list) or not all(isinstance(each, dict) and "name" in each for each in data):
            raise errors.unprocessable("`data` must be an array of objects with `name`, `value` and `operation`")
        changes = []
        for each in data:
            operation = str(each.get("operation", "SET")).upper()
            if operation not in ("SET", "DELETE"):
                raise errors.unprocessable(f"the operation {operation}; accepted are SET and DELETE")
            changes.append(
                ConfigChange(str(each["name"]), _config_value(each.get("value")), ConfigOperation[operation])
            )
        return await self._alter(request, changes)

    async def _alter(self, request: Request, changes: list[ConfigChange]) -> Response:
        await self._check_cluster(request)
        resource = ConfigResource(ResourceType.TOPIC, _topic(request))
        await self._clients.run(lambda: self._clients.admin.incremental_alter_configs({resource: changes}).check())
        return Response(status_code=204)

    # Records

    async def produce(self, request: Request) -> Response:
        """Sends the records of a request. The request's body is a sequence of JSON objects, one for each record.

        The response has a line for each record, in the same order.
        """
        cluster = await self._check_cluster(request)
        if media_type(request) not in ("", JSON_TYPE):
            raise RequestRefused(415, "HTTP 415 Unsupported Media Type")
        topic = _topic(request)
        await self._clients.describe(topic)
        values = _objects(await request.body())
        first = await anext(values, _END)
        if first is _END:
            raise RequestRefused(400, "The request's body has no record")
        if isinstance(first, RequestRefused):
            raise first
        result = await self._produced(cluster, topic, first)
        second = await anext(values, _END)
        if second is _END:
            return answer(result, result["error_code"])

        async def lines() -> AsyncIterator[bytes]:
            yield _line(result)
            following: Any = second
            while following is not _END:
                if isinstance(following, RequestRefused):
                    yield _line({"error_code": following.code, "message": following.message})
                else:
                    yield _line(await self._produced(cluster, topic, following))
                following = await anext(values, _END)

        return StreamingResponse(lines(), media_type=JSON_TYPE)

    async def _produced(self, cluster: str, topic: str, body: Any) -> dict[str, Any]:
        """Sends the record that the JSON value `body` describes, and returns the line of the response about it.

        The line contains the position of the record, or the error.
        """
        try:
            if not isinstance(body, dict):
                raise RequestRefused(400, "A record is a JSON object")
            key = await self._encoded(topic, KEY, body.get("key"))
            value = await self._encoded(topic, VALUE, body.get("value"))
            partition = body.get("partition_id")
            if partition is not None and not (
                type(partition) is int and await self._clients.has_partition(topic, partition)
            ):
                raise errors.partition_not_found()
            record: Record = (key, value, partition, _timestamp(body.get("timestamp")), _headers(body.get("headers")))
            found = (await self._clients.produce(topic, [record]))[0]
            if not isinstance(found, RecordMetadata):
                raise errors.of_cluster(found if isinstance(found, Exception) else RuntimeError(str(found)))
        except RequestRefused as error:
            return {"error_code": error.status, "message": error.message}
        moment = datetime.fromtimestamp(max(found.timestamp, 0) / 1000, UTC).isoformat(timespec="milliseconds")
        result = {
            "error_code": 200,
            "cluster_id": cluster,
            "topic_name": topic,
            "partition_id": found.partition,
            "offset": found.offset,
            "timestamp": moment.replace("+00:00", "Z"),
        }
        for part, data in ((KEY, key), (VALUE, value)):
            if body.get(part) is not None:
                result[part] = {"type": str(body[part].get("type", "BINARY")).upper(), "size": len(data or b"")}
        return result

    async def _encoded(self, topic: str, part: str, given: Any) -> bytes | None:
        if given is None:
            return None
        if not isinstance(given, dict):
            raise RequestRefused(400, f"`{part}` must be an object with `type` and `data`")
        schema = given.get("schema_id", given.get("schema"))
        kind = str(given.get("type") or ("AVRO" if schema is not None else "BINARY")).upper()
        form = _FORMS.get(kind)
        if form is None:
            raise RequestRefused(400, f"the type {kind}; accepted are {', '.join(_FORMS)}")
        if given.get("data") is None and form != JSON:
            return None
        encode = self._formats.encoder(form, part, schema)
        return await self._clients.run(lambda: encode(topic, given.get("data")))

    def _list(self, request: Request, kind: str, data: list[dict[str, Any]]) -> Response:
        metadata = {"self": str(request.url).partition("?")[0], "next": None}
        return answer({"kind": kind, "metadata": metadata, "data": data})


def _with_codes(handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Returns a handler that reports a topic which does not exist with the error code of version 3."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except RequestRefused as error:
            if error.code == errors.topic_not_found().code:
                raise errors.unknown_topic_or_partition() from None
            raise

    return handle


def _topic(request: Request) -> str:
    return unquote(request.path_params["topic"])


def _link(request: Request, place: str) -> dict[str, str]:
    return {"related": str(request.base_url).rstrip("/") + place}


def _head(request: Request, kind: str, place: str, name: str) -> dict[str, Any]:
    url = str(request.base_url).rstrip("/") + place
    return {"kind": kind, "metadata": {"self": url, "resource_name": f"crn:///{name}"}}


def _shown_topic(request: Request, cluster: str, description: TopicDescription) -> dict[str, Any]:
    place = f"/v3/clusters/{cluster}/topics/{quote(description.name)}"
    partitions = description.partitions
    return {
        **_head(request, "KafkaTopic", place, f"kafka={cluster}/topic={description.name}"),
        "cluster_id": cluster,
        "topic_name": description.name,
        "is_internal": description.is_internal,
        "replication_factor": len(partitions[0].replicas) if partitions else 0,
        "partitions_count": len(partitions),
        "partitions": _link(request, f"{place}/partitions"),
        "configs": _link(request, f"{place}/configs"),
        "partition_reassignments": _link(request, f"{place}/partitions/-/reassignment"),
        "authorized_operations": [],
    }


def _shown_config(request: Request, cluster: str, topic: str, entry: ConfigEntry) -> dict[str, Any]:
    place = f"/v3/clusters/{cluster}/topics/{quote(topic)}/configs/{entry.name}"
    return {
        **_head(request, "KafkaTopicConfig", place, f"kafka={cluster}/topic={topic}/config={entry.name}"),
        "cluster_id": cluster,
        "topic_name": topic,
        "name": entry.name,
        "value": entry.value,
        "is_default": entry.source != ConfigSource.TOPIC,
        "is_read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
        "source": _source(entry.source),
        "synonyms": [
            {"name": each.name, "value": each.value, "source": _source(each.source)} for each in entry.synonyms
        ],
    }


def _source(number: int) -> str:
    """Returns the API's name for the source of a configuration value; `number` is the source's number in
    ConfigSource."""
    names = {ConfigSource.DEFAULT: "DEFAULT_CONFIG"}
    try:
        source = ConfigSource(number)
    except ValueError:
        return "UNKNOWN"
    name = source.name if source in (ConfigSource.GROUP,) else f"{source.name}_CONFIG"
    return names.get(source, name if "DYNAMIC" in name or "STATIC" in name else f"DYNAMIC_{name}")


def _is_number(value: Any, largest: int) -> bool:
    """Returns whether `value` is a whole number from -1, which is the broker's default, to `largest`."""
    return type(value) is int and -1 <= value <= largest


def _config_value(value: Any) -> str | None:
    """Returns the value of a configuration key, which may be a number or a truth value in JSON.

    Raises RequestRefused for an array or an object.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list | dict):
        raise errors.unprocessable("the `value` of a configuration must be a string")
    return json.dumps(value)


async def _objects(content: bytes) -> AsyncIterator[Any]:
    """Yields the JSON values that follow each other in a body.

    If the rest of the body is not JSON, yields a RequestRefused as the last element instead of raising it.
    """
    decoder = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite_number)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        yield RequestRefused(400, f"The request's body is not UTF-8: {error}")
        return
    position = 0
    while True:
        while position < len(text) and text[position] in " \t\r\n":
            position += 1
        if position == len(text):
            return
        try:
            found, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            yield RequestRefused(400, f"The request's body is not JSON: {error}")
            return
        try:
            check_texts(found)
        except RequestRefused as error:
            yield error
            continue
        yield found


def _line(value: dict[str, Any]) -> bytes:
    return json_bytes(value) + b"\r\n"


def _timestamp(given: Any) -> int | None:
    """Returns `given`, a timestamp of the API, in ms since 1970; returns None if `given` is None.

    Raises RequestRefused if `given` is anything but a text in the form of RFC 3339.
    """
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise RequestRefused(400, f"the timestamp {given} does not have the form of RFC 3339") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _headers(given: Any) -> list[tuple[str, bytes | None]] | None:
    if given is None:
        return None
    try:
        found = [
            (each["name"], None if each.get("value") is None else base64.b64decode(each["value"], validate=True))
            for each in given
        ]
        if all(isinstance(name, str) for name, _ in found):
            return found
        raise TypeError("the name of a header is not a text")
    except (TypeError, KeyError, AttributeError, ValueError):
        raise RequestRefused(400, "a header has `name`, and `value` in base64") from None
