"""Sessions and heartbeats of brokers, by the table of Apache Kafka 4.3's BrokerHeartbeatManager."""

import pytest

from kafkapy.controller.broker_registration import begin_controlled_shutdown, fence_broker, register_broker
from kafkapy.controller.broker_sessions import BrokerSessions, Heartbeat
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.topics_image import NO_LEADER
from tests.harness.metadata import bootstrapped, commit, registration, with_brokers, with_topic

TIMEOUT_MS = 9000
FAR = 10**9


class Controller:
    """An active controller: an image, its sessions and a clock."""

    def __init__(self, *brokers, **options):
        self.image = with_brokers(bootstrapped(**options), *brokers)
        self.now = 1_000_000
        self.sessions = BrokerSessions(self.image, TIMEOUT_MS, self.now)

    def heartbeat(self, broker_id, offset=FAR, *, fence=False, shutdown=False, **fields):
        epoch = self.image.brokers[broker_id].epoch
        request = Heartbeat(broker_id, epoch, offset, fence, shutdown, **fields)
        result = self.sessions.heartbeat(self.image, request, self.now)
        self.image = commit(self.image, result)
        return result.response

    def register(self, broker_id):
        result = self.sessions.register(self.image, registration(broker_id), -1, self.now)
        self.image = commit(self.image, result)
        return result.response

    def fence_expired(self):
        result = self.sessions.fence_expired(self.image, self.now)
        self.image = commit(self.image, result)
        return result.response

    @property
    def fenced(self):
        return [broker.broker_id for broker in self.image.brokers.values() if broker.fenced]


def state(response):
    return response.is_fenced, response.is_in_controlled_shutdown, response.should_shut_down


# -- heartbeats


def test_a_registered_broker_is_unfenced_once_it_has_applied_its_registration():
    controller = Controller(1)
    controller.register(2)
    own = controller.image.offset - 1
    response = controller.heartbeat(2, own - 1)
    assert not response.is_caught_up and state(response) == (True, False, False)
    assert controller.heartbeat(2, own, fence=True).is_caught_up and controller.fenced == [2]
    assert state(controller.heartbeat(2, own)) == (False, False, False) and controller.fenced == []


def test_the_own_registration_is_the_last_record_of_its_batch():
    controller = Controller(1, 2)
    controller.image = with_topic(controller.image, "t", 3, 2)
    controller.now += TIMEOUT_MS + 1
    epoch = controller.register(1)
    own = controller.image.offset - 1
    assert own > epoch  # the batch begins with the changes of the former incarnation's partitions
    assert not controller.heartbeat(1, own - 1).is_caught_up
    assert controller.heartbeat(1, own).is_caught_up


def test_after_a_failover_the_broker_epoch_stands_for_the_registration():
    controller = Controller(1)
    controller.register(2)
    controller.sessions = BrokerSessions(controller.image, TIMEOUT_MS, controller.now)
    assert not controller.heartbeat(2, controller.image.brokers[2].epoch - 1).is_caught_up
    assert controller.heartbeat(2, controller.image.brokers[2].epoch).is_caught_up


@pytest.mark.parametrize("epoch_difference", [-1, 1])
def test_a_heartbeat_with_another_epoch_is_stale(epoch_difference):
    controller = Controller(1)
    request = Heartbeat(1, controller.image.brokers[1].epoch + epoch_difference, FAR, False, False)
    with pytest.raises(ApiError) as raised:
        controller.sessions.heartbeat(controller.image, request, controller.now)
    assert raised.value.error is Error.STALE_BROKER_EPOCH
    with pytest.raises(ApiError) as raised:
        controller.sessions.heartbeat(controller.image, request._replace(broker_id=9), controller.now)
    assert raised.value.error is Error.STALE_BROKER_EPOCH


def test_a_fenced_broker_may_shut_down_at_once():
    controller = Controller(1)
    controller.register(2)
    assert state(controller.heartbeat(2, 0, fence=True, shutdown=True)) == (True, False, True)


def test_an_unfenced_broker_is_fenced_when_it_asks_to():
    controller = Controller(1, 2)
    assert state(controller.heartbeat(1, fence=True)) == (True, False, False) and controller.fenced == [1]
    assert state(controller.heartbeat(2, fence=True, shutdown=True)) == (True, False, True)
    assert controller.fenced == [1, 2]


def test_a_broker_without_leaderships_shuts_down_at_once():
    controller = Controller(1, 2)
    assert state(controller.heartbeat(1, shutdown=True)) == (True, False, True) and controller.fenced == [1]


def test_a_controlled_shutdown_waits_until_the_others_know_the_new_leaders():
    controller = Controller(1, 2, 3)
    controller.image = with_topic(controller.image, "t", 3, 3)
    for broker_id in (1, 2, 3):
        controller.heartbeat(broker_id, controller.image.offset - 1)
    assert state(controller.heartbeat(1, shutdown=True)) == (False, True, False)
    moved = controller.image.offset - 1
    partitions = controller.image.topics.by_name["t"].partitions.values()
    assert all(1 not in partition.isr and partition.leader not in (1, NO_LEADER) for partition in partitions)
    controller.heartbeat(2, moved)
    controller.heartbeat(3, moved - 1)
    assert state(controller.heartbeat(1, shutdown=True)) == (False, True, False)
    controller.heartbeat(3, moved)
    assert state(controller.heartbeat(1, shutdown=True)) == (True, False, True)
    assert controller.fenced == [1]


def test_the_last_broker_waits_for_nobody():
    controller = Controller(1)
    controller.image = with_topic(controller.image, "t")
    assert state(controller.heartbeat(1, shutdown=True)) == (False, True, False)
    assert state(controller.heartbeat(1, shutdown=True)) == (True, False, True)


def test_brokers_that_stop_together_do_not_wait_for_each_other():
    controller = Controller(1, 2)
    controller.image = with_topic(controller.image, "t", 2, 2)
    for broker_id in (1, 2):
        assert controller.heartbeat(broker_id, 0, shutdown=True).is_in_controlled_shutdown
    for broker_id in (1, 2):
        assert controller.heartbeat(broker_id, 0, shutdown=True).should_shut_down


def test_a_new_controller_begins_the_controlled_shutdown_again():
    controller = Controller(1, 2)
    controller.image = with_topic(controller.image, "t", 2, 2)
    controller.image = commit(controller.image, begin_controlled_shutdown(controller.image, 1))
    controller.sessions = BrokerSessions(controller.image, TIMEOUT_MS, controller.now)
    assert state(controller.heartbeat(1, shutdown=True)) == (True, False, True)  # it leads nothing any more


def test_a_broker_that_was_fenced_in_its_controlled_shutdown_shuts_down():
    controller = Controller(1, 2)
    controller.image = with_topic(controller.image, "t", 2, 2)
    assert controller.heartbeat(1, shutdown=True).is_in_controlled_shutdown
    controller.image = commit(controller.image, fence_broker(controller.image, 1))
    assert state(controller.heartbeat(1, shutdown=True)) == (True, False, True)


def test_a_heartbeat_reports_failed_and_cordoned_directories():
    controller = Controller()
    one, two = b"\x11" * 16, b"\x22" * 16
    result = register_broker(controller.image, registration(1, (one, two)), -1)
    controller.image = commit(controller.image, result)
    controller.heartbeat(1)
    controller.image = with_topic(controller.image, "t")
    controller.heartbeat(1, offline_log_dirs=(two, b"\x33" * 16), cordoned_log_dirs=(one,))
    broker = controller.image.brokers[1]
    assert (broker.log_dirs, broker.cordoned_log_dirs) == ((one,), (one,))
    before = controller.image.offset
    controller.heartbeat(1, offline_log_dirs=(two,), cordoned_log_dirs=(one,))
    assert controller.image.offset == before


def test_a_broker_that_is_unfenced_with_a_failed_directory_does_not_lead_in_it():
    controller = Controller(2)
    one, two = b"\x11" * 16, b"\x22" * 16
    controller.image = commit(controller.image, register_broker(controller.image, registration(1, (one, two)), -1))
    controller.heartbeat(1)
    controller.image = with_topic(controller.image, "t", 2, 2)
    for number, partition in controller.image.topics.by_name["t"].partitions.items():
        in_two = tuple(two if broker == 1 else b"\x44" * 16 for broker in partition.replicas)
        controller.image.topics.by_name["t"].partitions[number] = partition._replace(directories=in_two, isr=(1,))
    controller.image = commit(controller.image, fence_broker(controller.image, 1))
    controller.heartbeat(1, offline_log_dirs=(two,))
    assert controller.fenced == []
    assert all(each.leader != 1 for each in controller.image.topics.by_name["t"].partitions.values())


# -- sessions


def test_every_unfenced_broker_begins_with_a_full_session():
    controller = Controller(1, 2)
    controller.register(3)
    sessions = controller.sessions
    epochs = {broker.broker_id: broker.epoch for broker in controller.image.brokers.values()}
    end = controller.now + TIMEOUT_MS
    assert sessions.has_valid_session(1, epochs[1], end) and not sessions.has_valid_session(1, epochs[1], end + 1)
    assert not sessions.has_valid_session(3, epochs[3], controller.now)
    assert sessions.expired(end) is None and sessions.next_expiry_ms() == end + 1


def test_brokers_that_expire_together_are_fenced_one_by_one():
    """No partition moves to a broker that is dead as well, if a live one has it."""
    controller = Controller(1, 2, 3)
    controller.image = with_topic(controller.image, "t", 6, 3)
    controller.now += TIMEOUT_MS
    controller.heartbeat(3)
    controller.now += 1
    assert controller.fence_expired() and len(controller.fenced) == 1
    assert controller.fence_expired() and sorted(controller.fenced) == [1, 2]
    assert not controller.fence_expired()
    assert {each.leader for each in controller.image.topics.by_name["t"].partitions.values()} == {3}


def test_a_heartbeat_extends_the_session_also_from_another_thread():
    controller = Controller(1)
    controller.now += TIMEOUT_MS
    controller.sessions.contact(1, controller.image.brokers[1].epoch, controller.now)
    controller.now += TIMEOUT_MS
    assert controller.sessions.expired(controller.now) is None


def test_the_session_of_a_former_incarnation_ends_without_a_change():
    controller = Controller(1)
    controller.now += TIMEOUT_MS + 1
    controller.register(1)
    controller.heartbeat(1)
    assert controller.fence_expired() and controller.fenced == []
    assert not controller.fence_expired()


def test_a_broker_that_is_known_to_be_dead_is_fenced_before_its_session_expires():
    controller = Controller(1)
    with pytest.raises(ApiError) as raised:
        controller.register(1)
    assert raised.value.error is Error.DUPLICATE_BROKER_REGISTRATION
    former = controller.image.brokers[1].epoch
    result = controller.sessions.fence_dead(controller.image, 1, former)
    controller.image = commit(controller.image, result)
    assert result.response and controller.fenced == [1]
    controller.register(1)
    controller.heartbeat(1)
    late = controller.sessions.fence_dead(controller.image, 1, former)
    assert not late.response and not late.records and controller.fenced == []


def test_a_broker_that_is_alive_after_all_is_unfenced_by_its_next_heartbeat():
    controller = Controller(1, 2)
    controller.now += TIMEOUT_MS + 1
    controller.fence_expired()
    controller.fence_expired()
    assert sorted(controller.fenced) == [1, 2]
    assert state(controller.heartbeat(1)) == (False, False, False) and controller.fenced == [2]


def test_without_brokers_no_session_expires():
    sessions = BrokerSessions(bootstrapped(), TIMEOUT_MS, 0)
    assert sessions.next_expiry_ms() is None and sessions.expired(FAR) is None
