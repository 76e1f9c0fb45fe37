"""One Spark session and one broker for all tests of the data source and of the jobs.

KAFKAPY_TEST_SERVER=apache runs the same tests against Apache Kafka, which must pass them too.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kafkapy.client import Producer
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, kafka_directory
from tests.spark_session import start_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Returns the session, with the format `kafkapy` registered."""
    from kafkapy.spark import register

    session = start_session(tmp_path_factory.mktemp("spark"))
    register(session)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def active_session(request: pytest.FixtureRequest) -> None:
    """Makes the session the active one of this thread's JVM thread, where Spark looks up the format of a writer.

    A call that an exception interrupted has closed the connection to that JVM thread, and a new one has no active
    session.
    """
    if "spark" in request.fixturenames:
        session = request.getfixturevalue("spark")
        session._jvm.SparkSession.setActiveSession(session._jsparkSession)


@pytest.fixture(scope="session")
def spark_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Returns the address of a broker for tests that neither stop nor fill it."""
    directory = tmp_path_factory.mktemp("spark-broker")
    properties = {"log.retention.ms": "-1"}  # records may be years old
    if os.environ.get("KAFKAPY_TEST_SERVER") == "apache":
        with ApacheKafka(kafka_directory("4.3.0"), directory, properties=properties, heap=("-Xmx512M",)) as kafka:
            yield kafka.bootstrap
    else:
        with BrokerProcess(directory / "kafkapy", properties) as process:
            yield process.bootstrap


class Topics:
    """Creates topics with new names on one broker, and sends records to them."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._numbers = itertools.count()

    def create(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        """Creates a topic and returns its name; `config` has `_` instead of `.`."""
        name = name or f"topic-{next(self._numbers)}"
        keys = {key.replace("_", "."): value for key, value in config.items()}
        self._admin.create_topics([NewTopic(name, partitions, 1, config=keys)])[name].result(30)
        return name

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(30)

    def add_partitions(self, name: str, total: int) -> None:
        self._admin.create_partitions([NewPartitions(name, total)])[name].result(30)

    def delete_records(self, name: str, partition: int, before: int) -> None:
        offset = TopicPartition(name, partition, before)
        for future in self._admin.delete_records([offset]).values():
            future.result(30)

    def fill(self, topic: str, values: Any, *, partition: int | None = 0, **more: Any) -> None:
        """Sends values; `more` are arguments of `Producer.send`."""
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            for future in [producer.send(topic, value, partition=partition, **more) for value in values]:
                future.result(30)


@pytest.fixture(scope="session")
def topics(spark_bootstrap: str) -> Topics:
    """Returns the topics of the shared broker."""
    return Topics(spark_bootstrap)


@pytest.fixture
def read(spark: Any, topics: Topics) -> Callable[..., Any]:
    """Returns the function `read(topic, option=value, ...)`, which returns a DataFrame of a batch. `kafka_` in the name
    of an option means `kafka.`"""

    def load(topic: str, schema: str | None = None, **options: object) -> Any:
        return with_options(spark.read, topics.bootstrap, topic, schema, options).load()

    return load


@pytest.fixture
def read_stream(spark: Any, topics: Topics) -> Callable[..., Any]:
    """Returns the function `read` for streams."""

    def load(topic: str, schema: str | None = None, **options: object) -> Any:
        return with_options(spark.readStream, topics.bootstrap, topic, schema, options).load()

    return load


def with_options(reader: Any, bootstrap: str, topic: str, schema: str | None, options: dict[str, object]) -> Any:
    reader = reader.format("kafkapy").option("kafka.bootstrap.servers", bootstrap)
    reader = reader if schema is None else reader.schema(schema)
    if not {"subscribe", "subscribePattern", "assign"} & set(options):
        reader = reader.option("subscribe", topic)
    for name, value in options.items():
        reader = reader.option("kafka." + name[6:].replace("_", ".") if name.startswith("kafka_") else name, str(value))
    return reader
