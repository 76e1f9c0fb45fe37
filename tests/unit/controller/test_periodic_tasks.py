"""The periodic tasks of an active controller, and their deadlines."""

from kafkapy.controller.broker_registration import fence_broker, unfence_broker
from kafkapy.controller.broker_sessions import BrokerSessions
from kafkapy.controller.delegation_tokens import NewToken, TokenSettings, create_token
from kafkapy.controller.periodic_tasks import PeriodicTasks, TaskIntervals
from kafkapy.controller.settings import ControllerSettings
from kafkapy.metadata.image import EMPTY_IMAGE
from kafkapy.security.principal import parse_principal
from tests.harness.metadata import bootstrapped, broker_config, commit, with_brokers, with_topic

SETTINGS = ControllerSettings(unclean_leader_election=True)
OFF = TaskIntervals(None, None)


def run_due(tasks, image, monotonic_ms):
    """Returns the image after all operations that are due, and their number."""
    count = 0
    while (operation := tasks.due(monotonic_ms)) is not None:
        image = commit(image, operation(image))
        count += 1
    return image, count


def test_without_tasks_and_sessions_nothing_is_due():
    tasks = PeriodicTasks(BrokerSessions(EMPTY_IMAGE, 9000, 0), SETTINGS, OFF, 0)
    assert tasks.next_deadline_ms() is None and tasks.due(10**9) is None


def test_every_expired_broker_is_fenced_by_an_operation_of_its_own():
    image = with_topic(with_brokers(bootstrapped(), 1, 2, 3), "t", 3, 3)
    tasks = PeriodicTasks(BrokerSessions(image, 9000, 100), SETTINGS, OFF, 100)
    assert tasks.next_deadline_ms() == 9101 and tasks.due(9100) is None
    image, count = run_due(tasks, image, 9101)
    assert count == 3 and all(broker.fenced for broker in image.brokers.values())
    assert tasks.next_deadline_ms() is None


def test_preferred_leaders_are_elected_at_once_again_while_there_are_more():
    image = with_topic(with_brokers(bootstrapped(), 1, 2), "t", 1500, 2)
    topic = image.topics.by_name["t"]
    for number, partition in topic.partitions.items():
        topic.partitions[number] = partition._replace(leader=partition.replicas[1])
    sessions = BrokerSessions(EMPTY_IMAGE, 9000, 0)
    tasks = PeriodicTasks(sessions, SETTINGS, TaskIntervals(300_000, None), 1000)
    assert tasks.next_deadline_ms() == 301_000
    image, count = run_due(tasks, image, 301_000)
    assert count == 2
    assert all(each.leader == each.replicas[0] for each in image.topics.by_name["t"].partitions.values())
    assert tasks.next_deadline_ms() == 601_000


def test_partitions_without_leader_are_elected_uncleanly_where_it_is_allowed():
    image = with_topic(with_brokers(bootstrapped(elr=False), 1, 2), "t", 1, 2)
    first, second = image.topics.by_name["t"].partitions[0].replicas
    for leave in (second, first):
        image = commit(image, fence_broker(image, leave))
    image = commit(image, unfence_broker(image, second))
    sessions = BrokerSessions(EMPTY_IMAGE, 9000, 0)
    tasks = PeriodicTasks(sessions, SETTINGS, TaskIntervals(None, 300_000), 0)
    image, count = run_due(tasks, image, 300_000)
    assert count == 1 and image.topics.by_name["t"].partitions[0].leader == second


def test_expired_delegation_tokens_are_removed():
    settings = TokenSettings("secret", 1000, 1000)
    ann = parse_principal("User:ann")
    image = commit(bootstrapped(), create_token(bootstrapped(), NewToken(ann, ann), settings, 500))
    sessions = BrokerSessions(EMPTY_IMAGE, 9000, 0)
    tasks = PeriodicTasks(sessions, SETTINGS, TaskIntervals(None, None, 60_000), 0, lambda: 1501)
    assert tasks.next_deadline_ms() == 60_000
    image, count = run_due(tasks, image, 60_000)
    assert count == 1 and image.delegation_tokens == {}
    assert tasks.next_deadline_ms() == 120_000


def test_a_task_that_fails_is_due_again_only_after_its_interval():
    sessions = BrokerSessions(EMPTY_IMAGE, 9000, 0)
    tasks = PeriodicTasks(sessions, SETTINGS, TaskIntervals(1000, None), 0)
    assert tasks.due(1000) is not None
    assert tasks.due(1000) is None and tasks.next_deadline_ms() == 2000


def test_the_intervals_are_kafkas_keys():
    assert TaskIntervals.from_config(broker_config()) == TaskIntervals(300_000, 300_000)
    off = broker_config(auto_leader_rebalance_enable="false")
    assert TaskIntervals.from_config(off) == TaskIntervals(None, 300_000)
