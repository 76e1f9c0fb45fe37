"""A simulated broker: the real replica manager, logs and fetchers on a disk that loses what was not synced.

A process goes through these states; a kill leads back to DEAD from each.

    DEAD        -> LOADED       it has loaded its logs by the metadata that it has, and registers until it is accepted
    LOADED      -> RUNNING      the controller has unfenced it: it accepts requests
    RUNNING     -> STOPPING     it asks to shut down, while its leaderships move
    STOPPING    -> DEAD         it has stopped cleanly
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from enum import Enum, auto
from types import SimpleNamespace
from typing import Any

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy._core.reactor.reactor import Request
from kafkapy.config import BrokerConfig
from kafkapy.controller.broker_sessions import Heartbeat, HeartbeatResponse
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataCache, MetadataImage
from kafkapy.protocol.api import ApiKey, decode_request_header, response_header_version
from kafkapy.protocol.messages.alter_partition import AlterPartitionResponse
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.replica.fetcher.fetch_connection import FetchPorts
from kafkapy.replica.fetcher.fetcher_manager import ReplicaFetcherManager
from kafkapy.replica.fetcher.settings import FetchSettings
from kafkapy.replica.partition import Partition
from kafkapy.replica.partition_response import PartitionResponse
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.security.principal import ANONYMOUS
from kafkapy.server.fetch_session import FetchSessions
from kafkapy.server.handlers.fetch import handle_fetch
from kafkapy.server.handlers.list_offsets import handle_list_offsets
from kafkapy.server.large_fetches import LargeFetches
from kafkapy.server.metadata_publisher import MetadataPublisher
from kafkapy.server.remote_controller import RemoteAlterPartition
from kafkapy.server.request_context import NOT_HELD
from kafkapy.storage.log import Log
from kafkapy.storage.log_manager import LogManager
from kafkapy.types import TopicPartition
from tests.lossy_filesystem import LossyFilesystem, PowerFailure
from tests.simulation.network import Action
from tests.simulation.replication.connection import FIRST_PORT, connect
from tests.simulation.replication.controller import ALTER_PARTITION_VERSION
from tests.simulation.replication.gated_requests import LISTENER, GatedRequests
from tests.simulation.replication.world import CONTROLLER, Timer, World

HEARTBEAT_MS = 500
STOPPING_HEARTBEAT_MS = 100
RETRY_MS = 300
CONTROLLER_TIMEOUT_MS = 1000
LAG_MAX_MS = 3000
SHUTDOWN_LIMIT_MS = 15_000
PROPERTIES = {
    "process.roles": "broker,controller",
    "num.recovery.threads.per.data.dir": "1",
    "replica.lag.time.max.ms": str(LAG_MAX_MS),
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.backoff.ms": "400",
    "replica.socket.timeout.ms": "1500",
    "request.timeout.ms": "2500",
    "log.index.size.max.bytes": "1024",
}
CONNECTION = SimpleNamespace(note_follower_fetch=lambda: None, peer_host="127.0.0.1")


class State(Enum):
    """The states of this module's table."""

    DEAD = auto()
    LOADED = auto()
    RUNNING = auto()
    STOPPING = auto()


class Context:
    """The parts of a RequestContext that the handlers of Fetch and ListOffsets use."""

    listener = LISTENER
    cost = None

    def __init__(
        self,
        services: Any,
        api_key: int,
        api_version: int,
        respond: Callable[[Any], None],
        request: Request | None = None,
    ) -> None:
        """`request` is a request that came through the reactor, and that the gate has left to Python."""
        self.services = services
        self.api_key = api_key
        self.api_version = api_version
        self.respond = respond
        self.client_id = "simulated"
        self.principal = ANONYMOUS
        self.connection = CONNECTION if request is None else request.connection
        self.waited_ms = NOT_HELD if request is None or not request.waits else request.waited_ms


class ControllerChannel:
    """Takes the place of the channel to the controller: a request is repeated until a response arrives."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def send(self, build: Any, key: ApiKey, done: Callable[[AlterPartitionResponse | None, int, Any], None]) -> None:
        broker, is_done = self._broker, False
        world, life = broker.world, broker.life

        def finish(response: AlterPartitionResponse) -> None:
            nonlocal is_done
            if broker.life == life and not is_done:
                is_done = True
                done(response, ALTER_PARTITION_VERSION, None)

        def attempt() -> None:
            if is_done or broker.life != life:
                return
            request = build(ALTER_PARTITION_VERSION)
            broker.ask_controller(lambda: world.controller.alter_partition(request), finish)
            broker.schedule(CONTROLLER_TIMEOUT_MS, attempt)

        attempt()


class Broker:
    """A node with its disk. `life` is another number in each state of the process that others can notice."""

    def __init__(self, world: World, broker_id: int, root: str, properties: dict[str, str]) -> None:
        self.world = world
        self.broker_id = broker_id
        self.state = State.DEAD
        self.life = 0
        self.is_paused = False
        self.is_disturbed = False  # it died without a clean stop, and is not in all ISRs again
        self.epoch = -1
        self.image: MetadataImage = world.controller.first_image
        self.waiting: list[Action] = []
        self._position = 0  # in the controller's log
        self._root = root
        self._disks = 0
        self._appends = 0
        self._properties = properties
        self.filesystem: LossyFilesystem
        self.requests: GatedRequests | None = None  # of the present process, once it has begun to load
        self.directory = ""
        self._new_disk()

    def _new_disk(self) -> None:
        self._disks += 1
        self.directory = os.path.join(self._root, f"{self.broker_id}-{self._disks}")

    # -- process

    @property
    def is_alive(self) -> bool:
        return self.state is not State.DEAD

    @property
    def is_accepting(self) -> bool:
        return self.state in (State.RUNNING, State.STOPPING)

    def start(self) -> None:
        """Loads the logs by the metadata that the controller has committed, and begins to register."""
        world = self.world
        world.note(f"{self.broker_id} starts")
        if not os.path.isdir(self.directory):
            os.mkdir(self.directory)
            self.filesystem = LossyFilesystem(self.directory)
        self.life += 1
        self.state = State.LOADED
        self.is_paused = False
        self.epoch = -1
        self.image = world.controller.image
        self._position = len(world.controller.log)
        self.receive(self._load)

    def _load(self) -> None:
        world, node_id = self.world, self.broker_id
        config = self.config = BrokerConfig(
            {**PROPERTIES, **self._properties, "node.id": str(node_id), "log.dirs": self.directory}
        )
        self.metadata = MetadataCache(self.image)
        fetch_sessions = FetchSessions(world, 100, lambda: world.random.randrange(1, 1 << 31))
        self.requests = GatedRequests(self, config.fetch_max_bytes, fetch_sessions.cache)
        self.log_manager = LogManager(
            config,
            filesystem=self.filesystem,
            clock=world,
            on_directory_failure=self._directory_failed,
            schedule=self.schedule,
            run_in_background=self._run_in_background,
        )
        self.alter_partition = RemoteAlterPartition(
            ControllerChannel(self),  # type: ignore[arg-type]
            node_id,
            lambda: self.epoch,
            lambda work: self.schedule(0, work),
            self.schedule,
        )
        self.manager = ReplicaManager(
            config,
            self.log_manager,
            self.metadata,
            world,
            self.schedule,
            node_id,
            self.alter_partition,
            on_leadership=self._on_leadership,
            make_fetchers=self._make_fetchers,
            gate=self.requests.gate,
        )
        self.publisher = MetadataPublisher(
            config, self.log_manager, self.manager, node_id, lambda work: work(), lambda work: work()
        )
        self.services = SimpleNamespace(
            metadata=self.metadata,
            replica_manager=self.manager,
            fetch_sessions=fetch_sessions,
            large_fetches=LargeFetches(),
            clock=world,
            config=config,
            request_errors=SimpleNamespace(count=lambda key, error: None),
            authorizer=None,
        )
        topics = self.image.topics
        self.log_manager.lock()
        clean_broker_epoch = self.log_manager.take_clean_shutdown_markers()
        self.log_manager.startup(
            lambda topic: self.publisher.topic_config(self.image, topic),
            lambda topic_id, partition: (
                topic_id is None or topics.replica_of(node_id, topic_id, partition.partition) is None
            ),
        )
        self.publisher.take_over(self.image)
        self.manager.startup(self.image, waits_for_registration=True)
        self._register(clean_broker_epoch)

    def _make_fetchers(self, may_follow: Callable[[Any], bool]) -> ReplicaFetcherManager:
        def leader_endpoint(broker_id: int) -> tuple[str, int] | None:
            registration = self.metadata.image.brokers.get(broker_id)
            return None if registration is None else ("localhost", FIRST_PORT + broker_id)

        def broker_epoch() -> int:
            registration = self.metadata.image.brokers.get(self.broker_id)
            return -1 if registration is None else registration.epoch

        ports = FetchPorts(
            connect=lambda host, port, **opened: connect(self, port, opened),
            schedule=self.schedule,
            monotonic_ms=self.world.monotonic_ms,
            leader_endpoint=leader_endpoint,
            broker_epoch=broker_epoch,
            metadata_version=lambda: self.metadata.image.metadata_version,
            on_high_watermarks=self.manager.on_followed_high_watermarks,
            on_truncated=self._truncated,
        )
        return ReplicaFetcherManager(FetchSettings.from_config(self.config), ports, may_follow)

    def _on_leadership(self, led: list[Partition], changed: list[Partition]) -> None:
        """Appends to partitions that this broker begins to lead, as a coordinator may do when it has loaded."""
        for partition in led:
            if partition.is_leader and self.world.random.random() < 0.3:
                builder = RecordBatchBuilder()
                self._appends += 1
                value = b"coordinator on %d:%d" % (self.broker_id, self._appends)
                builder.append(self.world.wall_ms(), None, value)
                partition.append_records_to_leader(bytearray(builder.build()), 1, from_client=False)

    def _truncated(self, log: Log) -> None:
        self.world.note(f"{self.broker_id} truncates {log.topic_partition} to {log.log_end_offset}")

    def _directory_failed(self, path: str, error: Exception) -> None:
        raise AssertionError(f"broker {self.broker_id}: the log directory failed: {error}") from error

    def kill(self) -> None:
        """Ends the process; the disk keeps everything that the process wrote."""
        self.world.note(f"{self.broker_id} killed")
        self.is_disturbed = True
        self._end()

    def lose_power(self) -> None:
        """Ends the process; the disk loses a part of what was not synced."""
        self.kill()
        self.world.note(f"{self.broker_id} lost power")
        old = self.directory
        self._new_disk()
        self.filesystem.pull_the_plug(self.directory, self.world.random)
        self.filesystem.close()
        shutil.rmtree(old)
        self.filesystem = LossyFilesystem(self.directory)

    def _end(self) -> None:
        self.life += 1
        self.state = State.DEAD
        self.is_paused = False
        self.waiting = []
        self.world.history.forget(self)
        if self.requests is not None:
            self.world.note_gated(self.requests.gate)
            self.requests.close()
            self.requests = None
        if hasattr(self, "log_manager"):
            for log in self.log_manager.logs():
                log.close_after_failure()
            self.log_manager.unlock()

    def close(self) -> None:
        """Releases everything at the end of a schedule."""
        if self.is_alive:
            self._end()
        if hasattr(self, "filesystem"):
            self.filesystem.close()

    # -- events

    def schedule(self, delay_ms: int, callback: Callable[[], object]) -> Timer:
        life = self.life

        def due() -> None:
            if self.life == life:
                callback()

        timer = Timer(due)
        self.world.after(delay_ms, lambda: self.receive(timer.run))
        return timer

    def _run_in_background(self, work: Action) -> None:
        self.schedule(self.world.random.randrange(200), work)

    def receive(self, action: Action) -> None:
        """Runs an event of this process: now, after its pause, or never."""
        if not self.is_alive:
            return
        if self.is_paused:
            self.waiting.append(action)
            return
        world, filesystem = self.world, self.filesystem
        life = self.life
        if world.fail_in_sync and world.random.random() < world.fail_in_sync and world.may_die(self):
            filesystem.fail_at = filesystem.syncs + world.random.randrange(4)
        try:
            if self.requests is None:
                action()
            else:
                self.requests.run(action)
        except PowerFailure:
            filesystem.fail_at = None
            if world.may_lose_power(self) and world.random.random() < 0.5:
                self.lose_power()
            else:
                self.kill()
            return
        filesystem.fail_at = None
        if self.life == life:
            world.history.observe(self)

    def pause(self) -> None:
        self.world.note(f"{self.broker_id} pauses")
        self.is_paused = True

    def resume(self) -> None:
        self.world.note(f"{self.broker_id} continues")
        self.is_paused = False
        waiting, self.waiting = self.waiting, []
        life = self.life

        def receive(action: Action) -> None:
            if self.life == life:
                self.receive(action)

        for action in waiting:
            self.world.after(0, lambda action=action: receive(action))  # type: ignore[misc]

    # -- controller

    def ask_controller(self, ask: Callable[[], Any], on_response: Callable[[Any], None]) -> None:
        """Sends one request; the response may be lost, or arrive twice."""
        world, life = self.world, self.life

        def handle() -> None:
            if world.controller.is_available:
                response = ask()
                world.transmit(CONTROLLER, self.broker_id, lambda: self.receive(lambda: take(response)))

        def take(response: Any) -> None:
            if self.life == life:
                on_response(response)

        world.transmit(self.broker_id, CONTROLLER, handle)

    def _register(self, clean_broker_epoch: int) -> None:
        controller, life = self.world.controller, self.life
        incarnation = self.broker_id * 10_000 + life
        is_registered = False

        def ask() -> int | None:
            # As in Kafka, a registration that arrives after the one of the next process would take its place, and the
            # broker would have to be started again.
            return controller.register(self.broker_id, incarnation, clean_broker_epoch) if self.life == life else None

        def registered(epoch: int | None) -> None:
            nonlocal is_registered
            if epoch is not None and not is_registered:
                is_registered = True
                self.epoch = epoch
                self._beat()

        def attempt() -> None:
            if not is_registered:
                self.ask_controller(ask, registered)
                self.schedule(RETRY_MS, attempt)

        attempt()

    def _beat(self) -> None:
        is_stopping = self.state is State.STOPPING
        if not self.has_metadata():
            self.follow_metadata_later()
        request = Heartbeat(self.broker_id, self.epoch, self.image.offset - 1, False, is_stopping)
        self.ask_controller(lambda: self.world.controller.heartbeat(request), self._heard)
        self.schedule(STOPPING_HEARTBEAT_MS if is_stopping else HEARTBEAT_MS, self._beat)

    def _heard(self, response: HeartbeatResponse | ApiError) -> None:
        if isinstance(response, ApiError):
            assert response.error is Error.STALE_BROKER_EPOCH
        elif self.state is State.LOADED and not response.is_fenced:
            self.state = State.RUNNING
        elif self.state is State.STOPPING and response.should_shut_down:
            self._finish_stop()

    def follow_metadata_later(self) -> None:
        """Fetches the newest records of the controller after a while, unless they are lost on the way."""
        if self.is_alive:
            self.world.transmit(CONTROLLER, self.broker_id, lambda: self.receive(self.follow_metadata))

    def follow_metadata(self) -> None:
        """Applies some or all of the records that this broker does not have yet, in one delta."""
        log = self.world.controller.log
        end = len(log) if self.world.random.random() < 0.7 else self._position + 1
        if self._position >= len(log):
            return
        delta = MetadataDelta(self.image)
        for offset, records in log[self._position : end]:
            for record in records:
                delta.replay(record)
            image_offset = offset
        self._position = min(end, len(log))
        self.image = delta.to_image(image_offset, self.image.epoch)
        self.metadata.image = self.image
        self.publisher.on_metadata(delta, self.image)
        if self._position < len(log):
            self.follow_metadata_later()

    def has_metadata(self) -> bool:
        return self._position == len(self.world.controller.log)

    # -- stop

    def stop(self) -> None:
        """Begins a controlled shutdown."""
        self.world.note(f"{self.broker_id} stops")
        self.state = State.STOPPING
        self.manager.begin_controlled_shutdown()
        self._beat()
        self.schedule(SHUTDOWN_LIMIT_MS, self.kill)

    def _finish_stop(self) -> None:
        self.world.note(f"{self.broker_id} has stopped")
        self.manager.shutdown()
        self.log_manager.checkpoints.write_high_watermarks()
        self.log_manager.shutdown(self.epoch)
        self._end()

    # -- requests

    def _offers_to_gate(self, topic: str) -> bool:
        """Returns whether the next request for the topic is offered to the gate first."""
        return topic in self.image.topics.by_name and self.world.random.random() < self.world.gate_share

    def serve(self, payload: bytes, respond: Callable[[list[Any]], None]) -> None:
        """Handles a request of a follower."""
        if not self.is_accepting:
            return
        key = int.from_bytes(payload[:2], "big")
        if key == ApiKey.FETCH and self.requests is not None and self.world.random.random() < self.world.gate_share:
            self.requests.send(payload, lambda answer: respond([answer]), from_client=False)
        else:
            self.serve_in_python(payload, respond)

    def serve_in_python(
        self, payload: bytes, respond: Callable[[list[Any]], None], request: Request | None = None
    ) -> None:
        """Handles a request on the Python path. `request` is given if the gate has left it to Python."""
        header, position = decode_request_header(payload)
        key, version = header.request_api_key, header.request_api_version
        prefix = (header.correlation_id & 0xFFFFFFFF).to_bytes(4, "big")

        def answer(response: Any) -> None:
            head = prefix + b"\0" if response_header_version(ApiKey(key), version) else prefix
            respond(response.encode_chunks(version, head))

        context: Any = Context(self.services, key, version, answer, request)
        if key == ApiKey.PRODUCE:
            self._produce(ProduceRequest.decode(payload, version, position), answer)
        elif key == ApiKey.FETCH:
            handle_fetch(context, FetchRequest.decode(payload, version, position))
        else:
            answer(handle_list_offsets(context, ListOffsetsRequest.decode(payload, version, position)))

    def ask(self, api_key: ApiKey, version: int, request: Any, on_response: Callable[[Any], None]) -> None:
        """Handles a request of a client, whose response is not encoded unless the gate is asked."""
        if not self.is_accepting:
            return
        context: Any = Context(self.services, api_key, version, on_response)
        if api_key != ApiKey.FETCH:
            on_response(handle_list_offsets(context, request))
        elif self.requests is not None and self._offers_to_gate(request.topics[0].topic):
            self.requests.fetch(version, request, on_response)
        else:
            handle_fetch(context, request)

    def produce(
        self,
        partition: TopicPartition,
        records: bytes,
        acks: int,
        timeout_ms: int,
        on_response: Callable[[PartitionResponse], None],
    ) -> None:
        if not self.is_accepting:
            return
        if self.requests is not None and self._offers_to_gate(partition.topic):
            self.requests.produce(partition, records, acks, timeout_ms, on_response)
        else:
            self._append(partition, records, acks, timeout_ms, on_response)

    def _append(
        self,
        partition: TopicPartition,
        records: Any,
        acks: int,
        timeout_ms: int,
        on_response: Callable[[PartitionResponse], None],
    ) -> None:
        self.manager.append_records(
            timeout_ms,
            acks,
            {partition: memoryview(bytearray(records))},
            lambda responses: on_response(responses[partition]),
        )

    def _produce(self, request: ProduceRequest, answer: Callable[[ProduceResponse], None]) -> None:
        """Handles a produce request with one batch that the gate has left to Python."""
        topic = request.topic_data[0]
        data = topic.partition_data[0]

        def respond(response: PartitionResponse) -> None:
            partition = ProduceResponse.PartitionProduceResponse(
                index=data.index, error_code=response.error, base_offset=response.base_offset
            )
            answer(
                ProduceResponse(
                    responses=[
                        ProduceResponse.TopicProduceResponse(
                            name=topic.name, topic_id=topic.topic_id, partition_responses=[partition]
                        )
                    ]
                )
            )

        name = topic.name or self.image.topics.by_id[topic.topic_id].name
        self._append(TopicPartition(name, data.index), data.records, request.acks, request.timeout_ms, respond)
