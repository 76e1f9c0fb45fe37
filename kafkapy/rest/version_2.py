"""Version 2 of the REST API: topics, produce requests, consumer instances."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kafkapy.client import OffsetAndMetadata, RecordMetadata, TopicPartition
from kafkapy.client.admin import EARLIEST, LATEST, ConfigResource, ResourceType, TopicDescription
from kafkapy.client.schema.subject_names import KEY, VALUE
from kafkapy.config.row import INT_MAX, LONG_MAX
from kafkapy.coordinator.group.topic_pattern import PatternError, TopicPattern
from kafkapy.decimal_text import is_number
from kafkapy.errors import ApiError
from kafkapy.http.json_api import JsonResponses, RequestRefused, json_body, media_type
from kafkapy.rest import errors
from kafkapy.rest.cluster import ClusterClients
from kafkapy.rest.consumers import ConsumerInstance, ConsumerInstances
from kafkapy.rest.formats import BINARY, CONSUMER_FORMATS, JSON, Encode, Formats

V2_TYPE = "application/vnd.kafka.v2+json"
JSON_TYPES = (V2_TYPE, "application/vnd.kafka+json", "application/json", "application/octet-stream")
# The content types of records -> the form in which they are embedded.
EMBEDDED = {f"application/vnd.kafka.{form}.v2+json": form for form in CONSUMER_FORMATS}
# A client may send every request with the content type of its records.
_BODY_TYPES = (*JSON_TYPES, *EMBEDDED)
_RECORD_FIELDS = {KEY, VALUE, "partition"}
_ANY_TYPE = ("", "*/*", "application/*", *JSON_TYPES)
# Error codes within the response to a produce request.
_FATAL, _RETRIABLE = 1, 2
JSON_RESPONSES = JsonResponses(V2_TYPE)
answer = JSON_RESPONSES.answer
Result = TypeVar("Result")


class VersionTwo:
    """The handlers of version 2."""

    def __init__(
        self, clients: ClusterClients, formats: Formats, consumers: ConsumerInstances, *, largest_response: int
    ) -> None:
        self._clients = clients
        self._formats = formats
        self._consumers = consumers
        self._largest_response = largest_response

    def routes(self) -> list[Route]:
        """Returns the routes of version 2 for the web framework: the path, the HTTP method and the handler of each
        request.
        """
        topic, instance = "/topics/{topic}", "/consumers/{group}/instances/{instance}"
        table: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("GET", "/brokers", self.brokers),
            ("GET", "/topics", self.topics),
            ("GET", topic, self.topic),
            ("POST", topic, self.produce),
            ("GET", f"{topic}/partitions", self.partitions),
            ("GET", f"{topic}/partitions/{{partition}}", self.partition),
            ("POST", f"{topic}/partitions/{{partition}}", self.produce),
            ("GET", f"{topic}/partitions/{{partition}}/offsets", self.offsets),
            ("POST", "/consumers/{group}", self.create_instance),
            ("DELETE", instance, self.delete_instance),
            ("POST", f"{instance}/subscription", self.subscribe),
            ("GET", f"{instance}/subscription", self.subscription),
            ("DELETE", f"{instance}/subscription", self.unsubscribe),
            ("POST", f"{instance}/assignments", self.assign),
            ("GET", f"{instance}/assignments", self.assignment),
            ("POST", f"{instance}/positions", self.seek),
            ("POST", f"{instance}/positions/beginning", self.seek_to_beginning),
            ("POST", f"{instance}/positions/end", self.seek_to_end),
            ("POST", f"{instance}/offsets", self.commit),
            ("GET", f"{instance}/offsets", self.committed),
            ("GET", f"{instance}/records", self.records),
        ]
        return [Route(path, handler, methods=[method]) for method, path, handler in table]

    # Topics

    async def brokers(self, request: Request) -> Response:
        cluster = await self._clients.run(self._clients.admin.describe_cluster)
        return answer({"brokers": sorted(each.node_id for each in cluster.brokers)})

    async def topics(self, request: Request) -> Response:
        return answer(sorted(await self._clients.run(self._clients.admin.list_topics)))

    async def topic(self, request: Request) -> Response:
        description = await self._clients.describe(_topic(request), is_fresh=True)
        resource = ConfigResource(ResourceType.TOPIC, description.name)
        configs = (await self._clients.run(lambda: self._clients.admin.describe_configs([resource])))[resource]
        values = {name: "" if entry.value is None else entry.value for name, entry in configs.items()}
        return answer({"name": description.name, "configs": values, "partitions": _partitions(description)})

    async def partitions(self, request: Request) -> Response:
        return answer(_partitions(await self._clients.describe(_topic(request), is_fresh=True)))

    async def partition(self, request: Request) -> Response:
        number = _partition(request)
        for each in _partitions(await self._clients.describe(_topic(request), is_fresh=True)):
            if each["partition"] == number:
                return answer(each)
        raise errors.partition_not_found()

    async def offsets(self, request: Request) -> Response:
        partition = TopicPartition(_topic(request), _partition(request))
        description = await self._clients.describe(partition.topic, is_fresh=True)
        if all(each.partition != partition.partition for each in description.partitions):
            raise errors.partition_not_found()
        admin = self._clients.admin
        first = await self._clients.run(lambda: admin.list_offsets({partition: EARLIEST})[partition])
        end = await self._clients.run(lambda: admin.list_offsets({partition: LATEST})[partition])
        return answer({"beginning_offset": first.offset, "end_offset": end.offset})

    # Producing

    async def produce(self, request: Request) -> Response:
        topic = _topic(request)
        given = media_type(request)
        form = EMBEDDED.get(given) or (JSON if given in ("", *JSON_TYPES) else None)
        if form is None:
            raise RequestRefused(415, "HTTP 415 Unsupported Media Type")
        body = await json_body(request, (given,), given)
        records = body.get("records")
        if not isinstance(records, list) or not records or not all(isinstance(each, dict) for each in records):
            raise errors.unprocessable("`records` must be an array of objects, with at least one")
        unknown = sorted({name for each in records for name in each} - _RECORD_FIELDS)
        if unknown:
            raise errors.unprocessable(f"a record has the fields key, value and partition, not {', '.join(unknown)}")
        number = _partition(request) if "partition" in request.path_params else None
        await self._clients.describe(topic)
        encoded = await self._clients.run(lambda: self._encoded(topic, form, body, records))
        wanted = [_wanted_partition(each, number) for each in records]
        largest = max((each for each in wanted if each is not None), default=None)
        if largest is not None and not await self._clients.has_partition(topic, largest):
            raise errors.partition_not_found()
        results = await self._clients.produce(
            topic, [(key, value, place, None, None) for (key, value), place in zip(encoded, wanted, strict=True)]
        )
        with_schema = form not in (JSON, BINARY)
        return answer(
            {
                "offsets": [_offset(each) for each in results],
                "key_schema_id": _schema_id(with_schema, (key for key, _ in encoded)),
                "value_schema_id": _schema_id(with_schema, (value for _, value in encoded)),
            }
        )

    def _encoded(
        self, topic: str, form: str, body: dict[str, Any], records: list[dict[str, Any]]
    ) -> list[tuple[bytes | None, bytes | None]]:
        """Returns the bytes of the key and the value of each record; blocks if a schema has to be registered.

        `form` is the form of the keys and values in `records`; `body` is the request's body, which names the schemas.
        """
        encoders: dict[str, Encode] = {}
        for part in (KEY, VALUE):
            if any(each.get(part) is not None for each in records):
                schema = body.get(f"{part}_schema_id")
                if isinstance(schema, str) and is_number(schema):
                    schema = int(schema)
                encoders[part] = self._formats.encoder(
                    form, part, body.get(f"{part}_schema") if schema is None else schema
                )

        def encode(record: dict[str, Any], part: str) -> bytes | None:
            return encoders[part](topic, record[part]) if record.get(part) is not None else None

        return [(encode(each, KEY), encode(each, VALUE)) for each in records]

    # Consumer instances

    async def create_instance(self, request: Request) -> Response:
        body = await json_body(request, _BODY_TYPES, V2_TYPE)
        group = unquote(request.path_params["group"])
        name = await self._clients.run(lambda: self._consumers.create(group, body))
        base = str(request.base_url).rstrip("/")
        place = f"/consumers/{quote(group, safe='')}/instances/{quote(name, safe='')}"
        return answer({"instance_id": name, "base_uri": base + place})

    async def delete_instance(self, request: Request) -> Response:
        group, name = _instance_key(request)
        await self._clients.run(lambda: self._consumers.remove(group, name))
        return Response(status_code=204)

    async def subscribe(self, request: Request) -> Response:
        body = await json_body(request, _BODY_TYPES, V2_TYPE)
        topics, pattern = body.get("topics"), body.get("topic_pattern")
        if (topics is None) == (pattern is None):
            raise errors.unprocessable("one of `topics` and `topic_pattern` is required")
        if pattern is not None:
            topics = await self._matching(pattern)
        if not isinstance(topics, list) or not all(isinstance(each, str) for each in topics):
            raise errors.unprocessable("`topics` must be an array of strings")

        def operation(instance: ConsumerInstance) -> None:
            instance.forget()
            instance.consumer.subscribe(topics, instance)

        return await self._empty(request, operation)

    async def _matching(self, pattern: Any) -> list[str]:
        """Returns the names of the topics that a regular expression matches completely. Raises RequestRefused if it is
        invalid."""
        if not isinstance(pattern, str):
            raise errors.unprocessable("`topic_pattern` must be a string")
        try:
            expression = TopicPattern(pattern)
            names = sorted(await self._clients.run(self._clients.admin.list_topics))
            return [name for name in names if expression.matches(name)]
        except PatternError as error:
            raise errors.unprocessable(f"`topic_pattern` is not valid: {error}") from None

    async def subscription(self, request: Request) -> Response:
        return answer({"topics": sorted(await self._on(request, lambda each: each.consumer.subscription()))})

    async def unsubscribe(self, request: Request) -> Response:
        def operation(instance: ConsumerInstance) -> None:
            instance.forget()
            instance.consumer.unsubscribe()

        return await self._empty(request, operation)

    async def assign(self, request: Request) -> Response:
        partitions = _partition_list(await json_body(request, _BODY_TYPES, V2_TYPE))

        def operation(instance: ConsumerInstance) -> None:
            instance.forget()
            instance.consumer.assign(partitions)

        return await self._empty(request, operation)

    async def assignment(self, request: Request) -> Response:
        found = await self._on(request, lambda each: each.consumer.assignment())
        return answer({"partitions": [{"topic": each.topic, "partition": each.partition} for each in sorted(found)]})

    async def seek(self, request: Request) -> Response:
        offsets = _offset_list(await json_body(request, _BODY_TYPES, V2_TYPE))
        positions = {partition: each.offset for partition, each in offsets.items()}
        return await self._empty(request, lambda each: each.seek(positions))

    async def seek_to_beginning(self, request: Request) -> Response:
        partitions = _partition_list(await json_body(request, _BODY_TYPES, V2_TYPE))
        return await self._empty(request, lambda each: each.seek_to_end_or_beginning(partitions, is_end=False))

    async def seek_to_end(self, request: Request) -> Response:
        partitions = _partition_list(await json_body(request, _BODY_TYPES, V2_TYPE))
        return await self._empty(request, lambda each: each.seek_to_end_or_beginning(partitions, is_end=True))

    async def commit(self, request: Request) -> Response:
        offsets = None
        if await request.body():
            body = await json_body(request, _BODY_TYPES, V2_TYPE)
            if body.get("offsets") is not None:
                # As in Confluent's proxy, the request names the last record that was processed, not the next one.
                given = _offset_list(body).items()
                offsets = {partition: each._replace(offset=each.offset + 1) for partition, each in given}
        return await self._empty(request, lambda each: each.commit(offsets))

    async def committed(self, request: Request) -> Response:
        partitions = _partition_list(await json_body(request, _BODY_TYPES, V2_TYPE))
        found = await self._on(request, lambda each: each.consumer.committed(partitions))
        shown = [
            {"topic": partition.topic, "partition": partition.partition, **each._asdict()}
            for partition, each in found.items()
            if each is not None
        ]
        for each in shown:
            del each["leader_epoch"]
        return answer({"offsets": shown})

    async def records(self, request: Request) -> Response:
        if request.method == "HEAD":  # the records would count as received, although no response has them
            raise RequestRefused(405, "HTTP 405 Method Not Allowed")
        instance = self._consumers.get(*_instance_key(request))
        accepted = [each.partition(";")[0].strip().lower() for each in request.headers.get("accept", "").split(",")]
        wanted = [EMBEDDED[each] for each in accepted if each in EMBEDDED]
        if wanted and instance.form not in wanted:
            raise errors.format_mismatch()
        if not wanted and not any(each in _ANY_TYPE for each in accepted):
            raise RequestRefused(406, "HTTP 406 Not Acceptable")
        timeout_ms, max_bytes = _query_number(request, "timeout"), _query_number(request, "max_bytes")
        timeout_s = None if timeout_ms is None else timeout_ms / 1000
        found = await self._on(request, lambda each: each.records(timeout_s, max_bytes, self._largest_response))
        return answer(found, media_type=f"application/vnd.kafka.{instance.form}.v2+json")

    async def _on(self, request: Request, operation: Callable[[ConsumerInstance], Result]) -> Result:
        instance = self._consumers.get(*_instance_key(request))
        return await self._clients.run_consumer(lambda: instance.run(lambda: operation(instance)))

    async def _empty(self, request: Request, operation: Callable[[ConsumerInstance], None]) -> Response:
        await self._on(request, operation)
        return Response(status_code=204)


def _topic(request: Request) -> str:
    return unquote(request.path_params["topic"])


def _partition(request: Request) -> int:
    text = request.path_params["partition"]
    if not is_number(text):
        raise RequestRefused(404, "HTTP 404 Not Found")
    return int(text)


def _instance_key(request: Request) -> tuple[str, str]:
    return unquote(request.path_params["group"]), unquote(request.path_params["instance"])


def _query_number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise errors.unprocessable(f"{name} is not a number: {text}") from None


def _partitions(description: TopicDescription) -> list[dict[str, Any]]:
    return [
        {
            "partition": each.partition,
            "leader": each.leader,
            "replicas": [
                {"broker": broker, "leader": broker == each.leader, "in_sync": broker in each.isr}
                for broker in each.replicas
            ],
        }
        for each in description.partitions
    ]


def _wanted_partition(record: dict[str, Any], number: int | None) -> int | None:
    wanted = number if number is not None else record.get("partition")
    if wanted is None:
        return None
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 0:
        raise errors.partition_not_found()
    return wanted


def _offset(result: RecordMetadata | BaseException) -> dict[str, Any]:
    if isinstance(result, RecordMetadata):
        return {"partition": result.partition, "offset": result.offset, "error_code": None, "error": None}
    is_retriable = isinstance(result, ApiError) and result.error.retriable
    code = _RETRIABLE if is_retriable else _FATAL
    return {"partition": None, "offset": None, "error_code": code, "error": str(result)}


def _schema_id(with_schema: bool, data: Iterable[bytes | None]) -> int | None:
    if not with_schema:
        return None
    return next((int.from_bytes(each[1:5], "big") for each in data if each is not None), None)


def _partition_of(value: Any) -> TopicPartition:
    if isinstance(value, dict):
        topic, partition = value.get("topic"), value.get("partition")
        if isinstance(topic, str) and type(partition) is int and 0 <= partition <= INT_MAX:
            return TopicPartition(topic, partition)
    raise errors.unprocessable("a partition has `topic` and the number `partition`")


def _partition_list(body: dict[str, Any]) -> list[TopicPartition]:
    found = body.get("partitions")
    if not isinstance(found, list):
        raise errors.unprocessable("`partitions` must be an array")
    return [_partition_of(each) for each in found]


def _offset_list(body: dict[str, Any]) -> dict[TopicPartition, OffsetAndMetadata]:
    found = body.get("offsets")
    if not isinstance(found, list):
        raise errors.unprocessable("`offsets` must be an array")
    offsets = {}
    for each in found:
        partition, offset = _partition_of(each), each.get("offset")
        if type(offset) is not int or not 0 <= offset < LONG_MAX:
            raise errors.unprocessable(f"`offset` must be a number from 0 to {LONG_MAX - 1}")
        offsets[partition] = OffsetAndMetadata(offset, str(each.get("metadata") or ""))
    return offsets
