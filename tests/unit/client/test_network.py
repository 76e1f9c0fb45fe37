"""The networking of a client: versions, responses, broken connections, and addresses without a listener."""

from __future__ import annotations

import signal
import socket
import threading
import time
from itertools import pairwise

import pytest

from kafkapy.client import WakeupError
from kafkapy.client.configuration import producer_config
from kafkapy.client.network import NEVER, Network
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsResponse
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.harness.client import MemoryBrokers, client_settings


@pytest.fixture
def brokers():
    harness = MemoryBrokers()
    yield harness
    harness.close()


def network_of(brokers, **settings):
    return brokers.network(producer_config(client_settings(**settings)))


def ask(network, node_id=1, **options):
    """Sends a ListGroups request; returns a list to which its response or error will be appended."""
    ended = []
    with network.lock:
        network.submit(
            node_id,
            ApiKey.LIST_GROUPS,
            lambda version: ListGroupsRequest(),
            lambda response, version, error: ended.append((response, version, error)),
            **options,
        )
    return ended


def known(network):
    """Waits for the first metadata and returns the network."""
    assert network.wait_until(lambda: network.metadata.updates > 0, 5)
    return network


def test_a_request_goes_out_in_the_newest_version_that_both_speak(brokers):
    brokers.versions[ApiKey.LIST_GROUPS] = (0, 3)
    brokers.answers[ApiKey.LIST_GROUPS] = lambda request, version: ListGroupsResponse()
    network = known(network_of(brokers))
    ended = ask(network)
    assert network.wait_until(lambda: bool(ended), 5)
    assert ended[0][1:] == (3, None)
    ended = ask(network, highest=1)
    assert network.wait_until(lambda: bool(ended), 5)
    assert ended[0][1] == 1
    network.close()


def test_a_request_that_a_condition_submits_is_sent_without_a_pause(brokers):
    brokers.answers[ApiKey.LIST_GROUPS] = lambda request, version: ListGroupsResponse()
    network = known(network_of(brokers))
    known_ms = network.clock.monotonic_ms()
    asked: list[bool] = []
    ended: list[object] = []

    def is_done() -> bool:
        if not asked:
            asked.append(True)
            network.submit(
                1, ApiKey.LIST_GROUPS, lambda version: ListGroupsRequest(), lambda *found: ended.append(found)
            )
        return bool(ended)

    assert network.wait_until(is_done, 5, poll_ms=1000)
    assert network.clock.monotonic_ms() - known_ms < 1000
    network.close()


def test_an_old_broker_is_asked_again_in_version_0(brokers):
    answer = brokers.answers[ApiKey.API_VERSIONS]

    def old(request, version):
        if version:
            return ApiVersionsResponse(error_code=int(Error.UNSUPPORTED_VERSION))
        return answer(request, 0)

    brokers.answers[ApiKey.API_VERSIONS] = old
    known(network_of(brokers)).close()
    assert [each.version for each in brokers.asked if each.key == ApiKey.API_VERSIONS][:2] == [3, 0]


def test_an_api_that_the_broker_has_not_is_refused_at_once(brokers):
    brokers.versions[ApiKey.LIST_GROUPS] = (7, 8)
    network = known(network_of(brokers))
    ended = ask(network)
    assert network.wait_until(lambda: bool(ended), 5)
    assert ended[0][2].error is Error.UNSUPPORTED_VERSION
    network.close()


def incomplete_request():
    request = ListGroupsRequest()
    del request.states_filter
    return request


UNENCODABLE = [
    (lambda version: ListGroupsRequest(states_filter=[5]), Error.INVALID_REQUEST, "version 4 cannot be written"),
    (lambda version: FetchRequest(max_bytes="many"), Error.INVALID_REQUEST, "LIST_GROUPS: an integer is required"),
    (lambda version: ListGroupsRequest(name="x"), Error.INVALID_REQUEST, "unexpected keyword argument 'name'"),
    (lambda version: incomplete_request(), Error.INVALID_REQUEST, "states_filter"),
    (lambda version: {}["topics"], Error.INVALID_REQUEST, "topics"),
    (lambda version: ListGroupsRequest(types_filter=["x"]), Error.UNSUPPORTED_VERSION, "version 4 has no field types_"),
]


@pytest.mark.parametrize("is_connected", [True, False])
@pytest.mark.parametrize(("build", "code", "words"), UNENCODABLE)
def test_a_request_that_cannot_be_encoded_fails_alone_and_at_once(brokers, is_connected, build, code, words):
    brokers.versions[ApiKey.LIST_GROUPS] = (0, 4)
    brokers.answers[ApiKey.LIST_GROUPS] = lambda request, version: ListGroupsResponse()
    network = network_of(brokers)
    node_id = 1 if is_connected else -1
    if is_connected:
        first = ask(known(network))
        assert network.wait_until(lambda: bool(first), 5)
    failed = []
    before = ask(network, node_id)
    with network.lock:
        network.submit(node_id, ApiKey.LIST_GROUPS, build, lambda *outcome: failed.append(outcome))
    after = ask(network, node_id)
    begun = network.clock.monotonic_ms()
    assert network.wait_until(lambda: bool(failed and before and after), 5)
    assert network.clock.monotonic_ms() - begun < 1000
    ((response, _, error),) = failed
    assert (response, error.error) == (None, code) and words in error.message
    assert [each[0][2] for each in (before, after)] == [None, None]
    assert network.is_ready(node_id) and len(brokers.attempts) == 1 + is_connected
    network.close()


def test_a_connection_whose_first_request_cannot_be_encoded_is_closed(brokers):
    network = network_of(brokers, client_id="x")
    ended = ask(network, -1)
    (connection,) = network._connections.values()
    connection._software_version = None
    assert network.wait_until(lambda: bool(ended), 5)
    assert ended[0][2].error is Error.INVALID_REQUEST and connection.is_closed
    network.close()


def test_what_was_in_flight_ends_with_its_connection_which_is_made_again(brokers):
    brokers.answers[ApiKey.LIST_GROUPS] = lambda request, version: ListGroupsResponse()
    network = known(network_of(brokers))
    brokers.breaks.append(ApiKey.LIST_GROUPS)
    first, second = ask(network), ask(network)
    assert network.wait_until(lambda: bool(first and second), 5)
    assert [each[0][2].error for each in (first, second)] == [Error.NETWORK_EXCEPTION] * 2
    assert network.wait_until(lambda: network.is_ready(1), 5)
    third = ask(network)
    assert network.wait_until(lambda: bool(third), 5)
    assert third[0][2] is None
    network.close()


def test_an_answer_that_does_not_come_in_time_ends_the_request(brokers):
    brokers.answers[ApiKey.LIST_GROUPS] = lambda request, version: None
    network = known(network_of(brokers))
    begun = brokers.clock.monotonic_ms()
    ended = ask(network, timeout_ms=7000)
    assert network.wait_until(lambda: bool(ended), 60)
    assert ended[0][2].error is Error.REQUEST_TIMED_OUT
    assert 7000 <= brokers.clock.monotonic_ms() - begun < 8000
    network.close()


def test_pauses_between_attempts_grow(brokers):
    network = network_of(brokers, reconnect_backoff_ms=100, reconnect_backoff_max_ms=1000)
    brokers.down.add(1)
    assert not network.wait_until(lambda: False, 10)
    pauses = [late - early for early, late in pairwise(brokers.attempts)]
    assert 80 <= pauses[0] <= 125
    assert all(800 <= each <= 1205 for each in pauses[5:])
    network.close()


def test_nobody_to_ask(brokers):
    network = known(network_of(brokers))
    ended = ask(network, node_id=9)
    assert isinstance(ended[0][2], ApiError)
    network.close()


def test_a_fetch_comes_in_while_nobody_waits_for_it(brokers):
    opened = []

    def connect(node, buffers):
        opened.append(brokers.environment.connect(node, buffers))
        return opened[-1]

    def low_water():
        return opened[-1].getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)

    brokers.answers[ApiKey.FETCH] = lambda request, version: None
    network = known(brokers.network(producer_config(client_settings()), connect=connect))
    with network.lock:
        network.submit(1, ApiKey.FETCH, lambda version: FetchRequest(topics=[]), lambda response, version, error: None)
    asked_for = []
    assert not network.wait_until(lambda: asked_for.append(low_water()), 0.01)
    assert asked_for[-1] == 1 < low_water()
    network.try_step()
    assert low_water() > 1
    network.close()


def test_interrupting_ends_one_wait_but_none_that_is_not_to_be_disturbed(brokers):
    network = known(network_of(brokers))
    network.interrupt()
    with network.uninterrupted():
        assert not network.wait_until(lambda: False, 0.01)
    assert network.wait_until(lambda: True, 5)
    with pytest.raises(WakeupError):
        network.wait_until(lambda: False, 5)
    assert not network.wait_until(lambda: False, 0.01)
    network.close()


def test_a_call_that_an_interrupt_preceded_takes_no_step(brokers):
    """The result could arrive within the first step, and the call would not raise."""
    network = known(network_of(brokers))
    steps = []
    step, network._step = network._step, lambda: steps.append(1) or step()
    network.interrupt()
    with pytest.raises(WakeupError):
        network.wait_until(lambda: bool(steps), 5)
    assert network.wait_until(lambda: bool(steps), 5)
    network.close()


@pytest.fixture
def interruptible():
    """Makes SIGINT raise KeyboardInterrupt within the test, even if this process was started with SIGINT ignored.

    A shell starts the background processes of a script in this way.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("drive", [lambda network: network.wait_until(lambda: False, 5), Network.try_step])
def test_ctrl_c_ends_the_wait_between_two_turns(brokers, drive):
    class Interrupting:
        finished = 0

        def run(self, monotonic_ms):
            signal.raise_signal(signal.SIGINT)
            self.finished += 1
            return NEVER

    network = known(network_of(brokers))
    network.tasks.append(task := Interrupting())
    with pytest.raises(KeyboardInterrupt):
        drive(network)
    assert task.finished == 1
    assert not network.lock.locked()
    network.tasks.remove(task)
    network.close()


def test_closing_twice_closes_once(brokers):
    network = known(network_of(brokers))
    network.close()
    network.close()
    assert network.is_closed()


def test_a_connection_that_the_broker_closes_while_idle_is_no_warning(brokers, caplog):
    brokers.answers[ApiKey.LIST_GROUPS] = lambda request, version: ListGroupsResponse()
    network = known(network_of(brokers))
    updates = network.metadata.updates
    brokers.close()
    assert not network.wait_until(lambda: False, 1)
    assert not [each for each in caplog.records if each.levelname == "WARNING"]
    assert not network.all_failed()
    assert network.metadata.updates > updates
    ended = ask(network)
    assert network.wait_until(lambda: bool(ended), 5)
    assert ended[0][2] is None
    network.close()


def test_a_connection_that_is_idle_for_long_is_closed_without_a_warning(brokers, caplog):
    network = known(network_of(brokers, connections_max_idle_ms=3000, metadata_max_age_ms=100_000))
    assert network.is_ready(-1)
    with caplog.at_level("DEBUG", "kafkapy.client"):
        assert not network.wait_until(lambda: False, 10)
    assert [each.levelname for each in caplog.records if "was idle" in each.message] == ["DEBUG"]
    assert not [each for each in caplog.records if each.levelname == "WARNING"]
    assert network._connections == {} and not network.all_failed()
    network.close()


def test_a_broker_that_cannot_be_reached_is_one_warning_that_names_it(brokers, caplog):
    brokers.down.add(1)
    network = network_of(brokers)
    assert not network.wait_until(lambda: False, 5)
    assert [each.message for each in caplog.records if each.levelname == "WARNING"] == [
        "Connection to bootstrap server memory:1 failed: down"
    ]
    network.close()


def test_the_thread_runs_the_tasks_while_no_caller_waits(brokers):
    runs = []
    has_run_often = threading.Event()

    class Repeated:
        def run(self, monotonic_ms):
            runs.append(monotonic_ms)
            if len(runs) == 5:
                has_run_often.set()
            return monotonic_ms + 1000

    network = brokers.network(producer_config(client_settings()), has_thread=True)
    network.tasks.append(Repeated())
    network.start()
    assert has_run_often.wait(60)
    network.close()
    assert not network._thread.is_alive()
    assert all(second - first <= 1100 for first, second in pairwise(runs[:5]))


def test_a_client_that_is_never_used_starts_no_thread_but_closes(brokers):
    network = brokers.network(producer_config(client_settings()), has_thread=False)
    network.start()
    assert not network._thread.is_alive()
    network.close()


def test_a_callback_must_not_wait(brokers):
    network = known(network_of(brokers))
    raised = []

    class Waiting:
        def run(self, monotonic_ms):
            try:
                network.wait_until(lambda: True, 1)
            except RuntimeError as error:
                raised.append(str(error))
            return NEVER

    network.tasks.append(Waiting())
    network.try_step()
    assert raised == ["a callback must not wait for the client that calls it"]
    network.tasks.clear()
    network.close()


def test_a_step_that_fails_is_logged_and_the_loop_goes_on(brokers, caplog):
    network = known(network_of(brokers))

    class Failing:
        runs = 0

        def run(self, monotonic_ms):
            self.runs += 1
            if self.runs < 3:
                raise RuntimeError("broken")
            return NEVER

    network.tasks.append(task := Failing())
    assert network.wait_until(lambda: task.runs >= 3, 60)
    assert "A step of the client's network loop failed" in caplog.text
    network.close()


def test_a_waiting_caller_notices_what_the_step_of_another_thread_has_done():
    class Gate:
        is_open = has_opened = False

        def run(self, monotonic_ms):
            self.has_opened = self.is_open
            return NEVER

    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and never responds
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        config = producer_config(bootstrap_servers=address, socket_connection_setup_timeout_ms=600_000)
        network = Network(config, in_flight_limit=5)
        network.tasks.append(gate := Gate())
        waiter = threading.Thread(target=network.wait_until, args=(lambda: gate.has_opened, 600), daemon=True)
        waiter.start()
        while not network._waiting_callers:
            time.sleep(0.001)
        gate.is_open = True
        while not gate.has_opened:
            network.try_step()
        waiter.join(30)
        assert not waiter.is_alive()
        network.close()


def test_a_step_that_is_requested_during_a_step_is_made(brokers):
    network = known(network_of(brokers))

    class Late:
        is_wanted = is_done = False

        def run(self, monotonic_ms):
            self.is_done = self.is_wanted
            return NEVER

    class Interfering:
        def run(self, monotonic_ms):
            if not late.is_wanted:
                thread = threading.Thread(target=change)
                thread.start()
                thread.join()
            return NEVER

    def change():
        late.is_wanted = True
        network.wake_for(0)

    network.wake_for(0)  # an earlier request, which the next step answers
    assert not network.wait_until(lambda: False, 0.01)
    network.tasks += [late := Late(), Interfering()]
    begun = network.clock.monotonic_ms()
    assert network.wait_until(lambda: late.is_done, 5)
    assert network.clock.monotonic_ms() - begun < 1000
    network.tasks.clear()
    network.close()


def test_the_thread_makes_the_step_that_becomes_due_in_the_step_of_a_caller():
    class Due:
        is_open = False
        has_run_again = threading.Event()

        def run(self, monotonic_ms):
            if not self.is_open:
                return NEVER
            if threading.current_thread() is not threading.main_thread():
                self.has_run_again.set()
            return monotonic_ms + 50

    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and never responds
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        config = producer_config(bootstrap_servers=address, socket_connection_setup_timeout_ms=600_000)
        network = Network(config, in_flight_limit=5)
        network.tasks.append(due := Due())
        network.start()
        while not network._thread_is_selecting:
            time.sleep(0.001)
        time.sleep(0.2)  # until the thread sleeps again after it has begun to connect
        due.is_open = True
        network.try_step()
        assert due.has_run_again.wait(15)
        network.close()
