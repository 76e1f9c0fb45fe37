"""The share consumers of Java and of librdkafka on kafkapy and on Apache Kafka, and on kafkapy after failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.clients.share_courses import (
    COURSES,
    LOCK_MS,
    keeps_a_renewed_record,
    loses_its_records_when_it_crashes,
    read_all,
    read_until,
)
from tests.clients.share_members import PROPERTIES, Driver, Member, Queue, java_command, librdkafka_command
from tests.cluster.cluster import Cluster, three
from tests.cluster.nodes import Flavour
from tests.peers import ApacheKafka

REPLICATED = {
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def commands(kafka_43: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    classes = tmp_path_factory.mktemp("classes")
    return {"java": java_command(kafka_43, classes), "librdkafka": librdkafka_command()}


@pytest.fixture(params=["java", "librdkafka"])
def make_driver(request: pytest.FixtureRequest, commands: dict[str, list[str]], tmp_path: Path) -> Callable[[], Driver]:
    return lambda: Driver(commands[request.param], tmp_path / "driver.log")


@pytest.fixture(scope="module")
def servers(kafka_43: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    kafka = ApacheKafka(kafka_43, tmp_path_factory.mktemp("kafka"), heap=("-Xmx512M",), properties=PROPERTIES)
    with BrokerProcess(tmp_path_factory.mktemp("kafkapy"), PROPERTIES) as ours, kafka as theirs:
        yield {"kafkapy": ours.bootstrap, "kafka": theirs.bootstrap}


@pytest.mark.parametrize("server", ["kafkapy", "kafka"])
@pytest.mark.parametrize("course", COURSES, ids=lambda course: course.__name__)
def test_a_share_consumer(
    course: Callable[[str, Driver], None], server: str, servers: dict[str, str], make_driver: Callable[[], Driver]
) -> None:
    with make_driver() as driver:
        course(servers[server], driver)


@pytest.mark.parametrize("server", ["kafkapy", "kafka"])
def test_a_share_consumer_that_crashes(server: str, servers: dict[str, str], make_driver: Callable[[], Driver]) -> None:
    with make_driver() as driver:
        loses_its_records_when_it_crashes(servers[server], driver, make_driver)


@pytest.mark.parametrize("server", ["kafkapy", "kafka"])
def test_javas_share_consumer_renews(
    server: str, servers: dict[str, str], commands: dict[str, list[str]], tmp_path: Path
) -> None:
    with Driver(commands["java"], tmp_path / "driver.log") as driver:
        keeps_a_renewed_record(servers[server], driver)


def test_the_broker_is_killed(make_driver: Callable[[], Driver], tmp_path: Path) -> None:
    """No acknowledged record is delivered again, and no other one is lost, with three kills."""
    total = 60
    with BrokerProcess(tmp_path, PROPERTIES) as broker, make_driver() as driver:
        queue = Queue(broker.bootstrap, share_record_lock_duration_ms=LOCK_MS, share_delivery_count_limit="10")
        queue.send(*map(str, range(total)))
        member = Member(driver, queue, max_poll_records="10")
        accepted: set[str] = set()
        for _ in range(3):
            first = read_until(member, 10)
            member.finish(first)
            accepted |= {each.value for each in first}
            read_until(member, 1)  # acquired and not acknowledged when the broker ends
            driver.kill()
            broker.kill()
            broker.start()
            driver.__enter__()
            member = Member(driver, queue, max_poll_records="10")
        rest = read_all(member, total - len(accepted), {})
        assert not accepted & rest.keys()
        assert accepted | rest.keys() == {str(number) for number in range(total)}


def test_the_leaders_move(make_driver: Callable[[], Driver], tmp_path: Path) -> None:
    """The leader of a partition ends while its records are read: the member follows the new one."""
    total = 60
    properties = {**PROPERTIES, **REPLICATED}
    with Cluster(tmp_path, three(Flavour.KAFKAPY), properties=properties) as cluster, make_driver() as driver:
        queue = Queue(cluster.bootstrap, 3, 3, share_record_lock_duration_ms=LOCK_MS, share_delivery_count_limit="10")
        queue.send(*map(str, range(total)), partitions=3)
        member = Member(driver, queue, max_poll_records="6")
        accepted: set[str] = set()
        kills = [0, 1]  # the partitions whose leader is killed
        while len(accepted) < total:
            records = read_until(member, 1)
            assert not accepted & {each.value for each in records}
            for record in records:
                member.acknowledge(record)
            results = member.commit()
            accepted |= {each.value for each in records if not results.get(each.partition, "none")}
            if kills and len(accepted) >= 12:
                partition = kills.pop()
                leader = cluster.wait_for_leader(queue.topic, partition)
                cluster[leader].kill()
                cluster.wait_for_leader(queue.topic, partition, other_than=leader)
                cluster.start([leader])
                cluster.wait_for_all_in_sync()
        assert not kills
        assert accepted == {str(number) for number in range(total)}
