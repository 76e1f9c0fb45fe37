"""Debezium reads the changes of a PostgreSQL table into a topic of a server, which is killed again and again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connect import ConnectWorker
from tests.ecosystem.programs import TopicReader, maven_jars, wait_until
from tests.full.conftest import NewServer
from tests.postgresql import PostgreSQL

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(1800)]

DEBEZIUM = "io.debezium:debezium-connector-postgres:3.0.8.Final"
TOPIC = "shop.public.orders"
ROWS, ROUNDS = 200, 4


@pytest.fixture
def database() -> Iterator[PostgreSQL]:
    with PostgreSQL(wal_level="logical") as server:
        server.query("create table orders (id int primary key, state text)")
        server.query(f"insert into orders select n, 'old' from generate_series(1, {ROWS}) n")
        yield server


def connector(database: PostgreSQL) -> dict[str, str]:
    converter = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "database.hostname": "127.0.0.1",
        "database.port": str(database.port),
        "database.user": "postgres",
        "database.password": "none",
        "database.dbname": "postgres",
        "plugin.name": "pgoutput",
        "topic.prefix": "shop",
        "table.include.list": "public.orders",
        "exactly.once.support": "required",
        "key.converter": converter,
        "value.converter": converter,
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "tombstones.on.delete": "false",
    }


def test_each_change_is_one_record(tmp_path: Path, kafka_43: Path, database: PostgreSQL, new_server: NewServer) -> None:
    expected: list[tuple[str, int, str | None]] = [("r", number, "old") for number in range(1, ROWS + 1)]
    plugins = maven_jars("debezium", DEBEZIUM)
    with (
        new_server() as broker,
        ConnectWorker(kafka_43, tmp_path / "worker", broker.bootstrap, plugins) as worker,
        TopicReader(broker.bootstrap, TOPIC) as topic,
    ):
        worker.request_again("PUT", "/connectors/orders/config", connector(database))

        def is_complete() -> bool:
            worker.is_running_all("orders")  # starts a failed task again
            return len(topic.read()) >= len(expected)

        for number in range(ROUNDS):
            wait_until(is_complete, worker.log)
            low, high = ROWS * (number + 1), ROWS * (number + 2)
            database.query(f"insert into orders select n, 'new' from generate_series({low + 1}, {high}) n")
            broker.kill()
            database.query(f"update orders set state = 'paid' where id between {low + 1} and {high}")
            broker.start()
            database.query(f"delete from orders where id between {low + 1} and {high}")
            ids = range(low + 1, high + 1)
            expected += [("c", each, "new") for each in ids]
            expected += [("u", each, "paid") for each in ids]
            expected += [("d", each, None) for each in ids]
        wait_until(is_complete, worker.log)
        assert sorted(map(change, topic.values), key=str) == sorted(expected, key=str)


def change(value: bytes) -> tuple[str, int, str | None]:
    """Returns the operation, the row's id, and its new state."""
    event = json.loads(value)
    after = event["after"]
    return event["op"], (after or event["before"])["id"], after and after["state"]
