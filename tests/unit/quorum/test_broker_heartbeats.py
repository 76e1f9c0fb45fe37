"""The registration and heartbeats of a broker towards an active controller, over real sockets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.metadata.image import MetadataCache
from kafkapy.nodes.controller_channel import ControllerChannel
from kafkapy.nodes.node_channel import Destination
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kafkapy.protocol.messages.broker_registration import BrokerRegistrationResponse
from kafkapy.quorum.broker_heartbeats import BrokerHeartbeats, LifecycleState
from tests.api_client import CONFIG, ApiServer
from tests.harness.controller import MemoryController
from tests.harness.metadata import bootstrapped, directory_of, with_brokers, with_topic
from tests.harness.stub_node import StubNode

WAIT_S = 20
DIRECTORY = directory_of(4)


class Broker:
    """Broker 4 with its heartbeats towards the node that listens on `port`."""

    def __init__(self, port: int | None, **keys: str) -> None:
        self.port = port
        self.offset = 0
        self.cordoned: tuple[bytes, ...] = ()
        self.fatal: list[BaseException] = []
        properties = {
            "process.roles": "broker,controller",
            **CONFIG,
            "node.id": "4",
            "controller.quorum.voters": "4@localhost:9093",
            "broker.rack": "r4",
            "broker.heartbeat.interval.ms": "20",
            **{key.replace("_", "."): value for key, value in keys.items()},
        }
        self.config = BrokerConfig(properties)
        self.thread = NodeThread()
        channel = ControllerChannel(
            self.thread, self._controller, client_id="4", request_timeout_ms=10_000, retry_timeout_ms=300
        )
        self.heartbeats = BrokerHeartbeats(
            self.config,
            self.thread,
            channel,
            cluster_id="cluster",
            metadata_offset=lambda: self.offset,
            cordoned_directories=lambda: self.cordoned,
            on_fatal=self.fatal.append,
        )

    def _controller(self) -> Destination | None:
        return None if self.port is None else Destination(1, "127.0.0.1", self.port)

    def in_background(self, work: Any) -> Future[Any]:
        """Runs `work`, which waits, on a thread of its own."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except Exception as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future


class Active:
    """The active controller with brokers 1 and 2 and a topic on them."""

    def __init__(self) -> None:
        image = with_topic(with_brokers(bootstrapped(), 1, 2), "t", 2, 2)
        self.controller = MemoryController(MetadataCache(image))
        self.server = ApiServer(controller=self.controller, image=image)
        self.port = self.server.listen("CONTROLLER")

    def registered(self) -> Any:
        return self.controller.image.brokers[4]


@pytest.fixture
def active() -> Iterator[Active]:
    running = Active()
    yield running
    running.server.close()
    assert running.server.harness.errors == []


@pytest.fixture
def brokers() -> Iterator[list[Broker]]:
    made: list[Broker] = []
    yield made
    for each in made:
        each.thread.stop()


def started(brokers: list[Broker], port: int | None, **keys: str) -> Broker:
    brokers.append(Broker(port, **keys))
    return brokers[-1]


def state(broker: Broker) -> LifecycleState:
    return broker.heartbeats.state


def until(condition: Any) -> None:
    reached = threading.Event()
    for _ in range(WAIT_S * 1000):
        if condition():
            return
        reached.wait(0.001)
    raise AssertionError("the condition was not met in time")


def test_a_broker_registers_stays_fenced_until_it_is_ready_and_shuts_down(
    active: Active, brokers: list[Broker]
) -> None:
    broker = started(brokers, active.port)
    epoch = broker.heartbeats.register([DIRECTORY], -1)
    registered = active.registered()
    assert epoch == registered.epoch == broker.heartbeats.broker_epoch
    assert (registered.fenced, registered.rack, registered.log_dirs) == (True, "r4", (DIRECTORY,))
    assert registered.incarnation_id == broker.heartbeats.incarnation_id
    assert [each.port for each in registered.endpoints.values()] == [9092]
    broker.offset = epoch
    broker.heartbeats.unfence()
    assert state(broker) is LifecycleState.RUNNING
    assert not active.registered().fenced
    broker.heartbeats.give_up_leaderships()
    assert active.registered().fenced
    assert state(broker) is LifecycleState.STOPPED
    broker.heartbeats.end_session()


def test_a_broker_that_was_alone_continues_with_its_registration(active: Active, brokers: list[Broker]) -> None:
    first = started(brokers, active.port)
    first.offset = first.heartbeats.register([DIRECTORY], -1)
    first.heartbeats.unfence()
    first.thread.stop()
    second = started(brokers, active.port)
    second.offset = first.offset
    sent = active.controller.submitted
    second.heartbeats.continue_registration(first.heartbeats.broker_epoch)
    until(lambda: active.controller.submitted >= sent + 2)
    assert state(second) is LifecycleState.RUNNING and not active.registered().fenced
    second.heartbeats.give_up_leaderships()
    assert active.registered().fenced


def test_a_broker_is_not_unfenced_before_it_has_applied_its_registration(active: Active, brokers: list[Broker]) -> None:
    broker = started(brokers, active.port)
    epoch = broker.heartbeats.register([DIRECTORY], -1)
    unfenced = broker.in_background(broker.heartbeats.unfence)
    sent = active.controller.submitted
    until(lambda: active.controller.submitted >= sent + 3)
    assert not unfenced.done()
    broker.offset = epoch
    unfenced.result(WAIT_S)
    assert not active.registered().fenced


def test_the_registration_is_repeated_until_a_controller_is_active(active: Active, brokers: list[Broker]) -> None:
    active.controller.is_active = False
    broker = started(brokers, None)
    registered = broker.in_background(lambda: broker.heartbeats.register([DIRECTORY], 17))
    broker.port = active.port
    active.controller.is_active = True
    assert registered.result(WAIT_S) == active.registered().epoch


@pytest.mark.parametrize("is_reachable", [True, False])
def test_a_broker_that_cannot_register_says_why(active: Active, brokers: list[Broker], is_reachable: bool) -> None:
    broker = started(brokers, active.port if is_reachable else None, initial_broker_registration_timeout_ms="600")
    broker.heartbeats._cluster_id = "other"
    reason = "INCONSISTENT_CLUSTER_ID" if is_reachable else "REQUEST_TIMED_OUT"
    with pytest.raises(ApiError, match=f"not registered within 600 ms: registration: {reason}") as raised:
        broker.heartbeats.register([DIRECTORY], -1)
    assert raised.value.error is Error.REQUEST_TIMED_OUT
    assert broker.heartbeats.state is LifecycleState.STOPPED


def test_a_failed_directory_is_reported_at_once(active: Active, brokers: list[Broker]) -> None:
    broker = started(brokers, active.port, broker_heartbeat_interval_ms="60000")
    broker.offset = broker.heartbeats.register([DIRECTORY, directory_of(5)], -1) + 100
    broker.heartbeats.unfence()
    broker.heartbeats.report_offline(DIRECTORY)
    until(lambda: active.registered().log_dirs == (directory_of(5),))
    assert active.registered().cordoned_log_dirs == ()


def test_a_cordoned_directory_is_reported_at_once(active: Active, brokers: list[Broker]) -> None:
    broker = started(brokers, active.port, broker_heartbeat_interval_ms="60000")
    broker.heartbeats.report_cordoned()  # not registered yet: nothing is sent
    broker.cordoned = (DIRECTORY,)
    broker.offset = broker.heartbeats.register([DIRECTORY, directory_of(5)], -1) + 100
    broker.heartbeats.unfence()
    assert active.registered().cordoned_log_dirs == (DIRECTORY,)
    for cordoned in ((), (DIRECTORY, directory_of(5))):
        broker.cordoned = cordoned
        broker.heartbeats.report_cordoned()
        until(lambda wanted=cordoned: set(active.registered().cordoned_log_dirs or ()) == set(wanted))


def test_a_failed_directory_that_cannot_be_reported_ends_the_broker(brokers: list[Broker]) -> None:
    with StubNode() as node:
        node.answers[ApiKey.BROKER_REGISTRATION] = lambda request, version: BrokerRegistrationResponse(broker_epoch=5)
        node.answers[ApiKey.BROKER_HEARTBEAT] = lambda request, version: BrokerHeartbeatResponse(
            error_code=Error.STALE_BROKER_EPOCH
        )
        broker = started(brokers, node.port, log_dir_failure_timeout_ms="100")
        broker.heartbeats.register([DIRECTORY], -1)
        broker.heartbeats.report_offline(DIRECTORY)
        until(lambda: broker.fatal)
        assert isinstance(broker.fatal[0], StorageError)


def test_a_broker_that_was_fenced_asks_to_be_unfenced(active: Active, brokers: list[Broker]) -> None:
    broker = started(brokers, active.port)
    broker.offset = broker.heartbeats.register([DIRECTORY], -1)
    broker.heartbeats.unfence()
    registered = active.registered()._replace(fenced=True)
    cache = active.controller.cache
    cache.image = cache.image._replace(brokers={**cache.image.brokers, 4: registered})
    until(lambda: not active.registered().fenced)


def test_a_stop_before_the_broker_runs_asks_for_no_shutdown(active: Active, brokers: list[Broker]) -> None:
    broker = started(brokers, active.port)
    broker.heartbeats.register([DIRECTORY], -1)
    broker.heartbeats.give_up_leaderships()
    broker.heartbeats.end_session()
    until(lambda: broker.heartbeats.state is LifecycleState.STOPPED)
    assert active.registered().fenced


def test_an_old_controller_gets_what_its_versions_have(brokers: list[Broker]) -> None:
    heartbeats: list[BrokerHeartbeatRequest] = []

    def heartbeat(request: BrokerHeartbeatRequest, version: int) -> BrokerHeartbeatResponse:
        heartbeats.append(request)
        return BrokerHeartbeatResponse(is_caught_up=True, is_fenced=request.want_fence)

    with StubNode() as node:
        node.answers[ApiKey.BROKER_REGISTRATION] = lambda request, version: BrokerRegistrationResponse(broker_epoch=5)
        node.answers[ApiKey.BROKER_HEARTBEAT] = heartbeat
        node.versions[ApiKey.BROKER_REGISTRATION] = (0, 3)
        node.versions[ApiKey.BROKER_HEARTBEAT] = (0, 1)
        broker = started(brokers, node.port)
        assert broker.heartbeats.register([DIRECTORY], 3) == 5
        broker.heartbeats.report_offline(DIRECTORY)
        broker.heartbeats.unfence()
        [registration] = node.of(ApiKey.BROKER_REGISTRATION)
    assert {each.name for each in registration.features} == {"metadata.version"}
    assert registration.previous_broker_epoch == 3
    assert heartbeats[-1].offline_log_dirs == [DIRECTORY]
    assert heartbeats[0].broker_epoch == 5
