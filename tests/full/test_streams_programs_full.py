"""Kafka's own system-test programs of Kafka Streams against a server that is killed while they run.

The programs check their results themselves; `SUCCESS` and the like are what Kafka's system tests look for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client import Producer
from tests.ecosystem.kafka_streams import eos_jars, streams_jars
from tests.ecosystem.programs import JavaProgram, TopicReader, create_topics, wait_until, write_properties
from tests.full.conftest import NewServer
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(1800)]

PROGRAMS = "org.apache.kafka.streams.tests."
SMOKE_TOPICS = (
    "echo data min min-suppressed min-raw max sum sws-raw sws-suppressed dif cnt avg wcnt tagg".split()  # noqa: SIM905
)
EOS_TOPICS = ("data", "echo", "min", "sum", "repartition", "max", "cnt")
MOST_SUBTOPOLOGIES = 31
# A killed member leaves its group soon.
PROPERTIES = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.heartbeat.interval.ms": "1000",
    "group.streams.min.heartbeat.interval.ms": "1000",
}
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "streams"])


@pytest.fixture
def broker(new_server: NewServer) -> Iterator[ServerProcess]:
    with new_server(PROPERTIES) as process:
        yield process


class Programs:
    """Starts programs of one test jar on one broker; each has a folder, a settings file and a state of its own."""

    def __init__(self, directory: Path, broker: ServerProcess, jars: Path, **settings: str) -> None:
        self._directory = directory
        self._jars = jars
        self._settings = {"bootstrap.servers": broker.bootstrap}
        self._settings |= {name.replace("_", "."): value for name, value in settings.items()}

    def settings(self, name: str) -> Path:
        (self._directory / name).mkdir(exist_ok=True)
        own = {"state.dir": str(self._directory / name / "state")}
        return write_properties(self._directory / name / "settings", self._settings | own)

    def program(self, name: str, main: str, *arguments: str, ready: str = "") -> JavaProgram:
        """Returns a program whose first argument is its settings file."""
        path = str(self.settings(name))
        return JavaProgram(self._directory / name, self._jars, PROGRAMS + main, path, *arguments, ready=ready)

    def plain(self, name: str, main: str, *arguments: str, ready: str = "") -> JavaProgram:
        return JavaProgram(self._directory / name, self._jars, PROGRAMS + main, *arguments, ready=ready)


def settings_of(protocol: str) -> dict[str, str]:
    if protocol == "streams":
        return {"group_protocol": "streams"}
    return {"group_protocol": "classic", "session_timeout_ms": "10000"}


@PROTOCOLS
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_the_smoke_test_passes(tmp_path: Path, broker: ServerProcess, guarantee: str, protocol: str) -> None:
    create_topics(broker.bootstrap, dict.fromkeys(SMOKE_TOPICS, 5))
    settings = {"processing_guarantee": guarantee, "acceptable_recovery_lag": str(2**63 - 1)} | settings_of(protocol)
    programs = Programs(tmp_path, broker, streams_jars(), **settings)
    is_running = "REBALANCING -> RUNNING"
    with (
        programs.program("processor-1", "StreamsSmokeTest", "process", ready=is_running) as first,
        programs.program("driver", "StreamsSmokeTest", "run") as driver,
        TopicReader(broker.bootstrap, "echo") as echo,
    ):
        echo.wait_for(500)
        first.kill()
        with programs.program("processor-2", "StreamsSmokeTest", "process", ready=is_running) as second:
            echo.wait_for(len(echo.records) + 500)
            broker.kill()
            broker.start()
            driver.result()
            assert "SUCCESS" in driver.log(), driver.log()[-6000:]
            assert "ALL-RECORDS-DELIVERED" in driver.log()
            assert second.is_running


@PROTOCOLS
def test_the_relational_smoke_test_passes(tmp_path: Path, broker: ServerProcess, protocol: str) -> None:
    partitions = {"in-article": 3, "in-comment": 5, "out-augmented-article": 3, "out-augmented-comment": 5}
    create_topics(broker.bootstrap, partitions)
    programs = Programs(tmp_path, broker, streams_jars())

    def application(number: int) -> JavaProgram:
        arguments = ("application", broker.bootstrap, f"processor{number}", "exactly_once_v2", protocol)
        name = f"processor-{number}"
        state = str(tmp_path / f"state-{number}")
        return programs.plain(name, "RelationalSmokeTest", *arguments, state, ready="REBALANCING -> RUNNING|to RUNNING")

    with (
        application(1) as first,
        programs.plain("driver", "RelationalSmokeTest", "driver", broker.bootstrap) as driver,
        TopicReader(broker.bootstrap, "out-augmented-comment") as output,
    ):
        output.wait_for(10)
        first.kill()
        with application(2):
            output.wait_for(len(output.records) + 10)
            broker.kill()
            broker.start()
            driver.result()
    assert "Smoke test complete: passed" in driver.log(), driver.log()[-6000:]


def test_a_long_outage_of_the_broker_is_survived(tmp_path: Path, broker: ServerProcess) -> None:
    create_topics(broker.bootstrap, {"streamsResilienceSource": 3, "streamsResilienceSink": 1})
    programs = Programs(tmp_path, broker, streams_jars())
    overrides = "consumer.max.poll.interval.ms=50000,producer.retries=2,producer.request.timeout.ms=15000"
    overrides += ",producer.max.block.ms=30000"

    def produce(begin: int, end: int) -> None:
        with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
            for number in range(begin, end):
                producer.send("streamsResilienceSource", f"value {number}", key=f"key {number}")

    main = "StreamsBrokerDownResilienceTest"
    with (
        programs.program("application", main, overrides) as application,
        TopicReader(broker.bootstrap, "streamsResilienceSink") as sink,
    ):
        produce(0, 2000)
        sink.wait_for(2000)
        broker.kill()
        # The client gives up a connection attempt several times before the broker is back.
        application.wait_for("could not be established")
        broker.start()
        produce(2000, 4000)
        wait_until(
            lambda: len({each.value for each in sink.read()}) == 4000, lambda: application.log()[-4000:], application
        )
        application.stop()
        assert "Complete shutdown of streams resilience test app now" in application.log()


@pytest.mark.parametrize("mode", ["", "-complex"])
def test_the_exactly_once_program_finds_no_lost_or_repeated_record(
    tmp_path: Path, broker: ServerProcess, mode: str
) -> None:
    # The program requests three replicas for its changelogs, which it leaves as they are if they exist.
    stores = [f"EosTest-KSTREAM-{kind}-STATE-STORE-{number:010d}-changelog" for number in range(MOST_SUBTOPOLOGIES)
              for kind in ("AGGREGATE", "REDUCE")]  # fmt: skip
    create_topics(broker.bootstrap, dict.fromkeys([*EOS_TOPICS, *stores], 5))
    settings = {"processing_guarantee": "exactly_once_v2", "session_timeout_ms": "10000"}
    programs = Programs(tmp_path, broker, eos_jars(), **settings)
    process = f"process{mode}"
    with (
        programs.program("processor-1", "StreamsEosTest", process) as first,
        programs.program("generator", "StreamsEosTest", "run") as generator,
        TopicReader(broker.bootstrap, "echo") as echo,
    ):
        echo.wait_for(500)
        first.kill()
        with programs.program("processor-2", "StreamsEosTest", process) as second:
            echo.wait_for(len(echo.records) + 500)
            broker.kill()
            broker.start()
            echo.wait_for(len(echo.records) + 500)
            generator.stop()
            with TopicReader(broker.bootstrap, "data") as data:
                data.read_all()
                echo.wait_for(len(data.records))
            second.stop()
        with programs.program("verifier", "StreamsEosTest", f"verify{mode}") as verifier:
            verifier.result()
    assert "ALL-RECORDS-DELIVERED" in verifier.log(), verifier.log()[-6000:]
