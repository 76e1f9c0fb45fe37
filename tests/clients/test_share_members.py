"""Share consumers of Java and of librdkafka: a small sample of tests/full/test_share_consumers_full.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.clients.share_courses import gets_a_record_up_to_the_limit, gets_what_its_acknowledgements_leave
from tests.clients.share_members import PROPERTIES, Driver, java_command, librdkafka_command

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker"), PROPERTIES) as server:
        yield server


def test_javas_share_consumer(broker: BrokerProcess, kafka_43: Path, tmp_path: Path) -> None:
    with Driver(java_command(kafka_43, tmp_path / "classes"), tmp_path / "driver.log") as driver:
        gets_what_its_acknowledgements_leave(broker.bootstrap, driver)


def test_librdkafkas_share_consumer(broker: BrokerProcess, tmp_path: Path) -> None:
    with Driver(librdkafka_command(), tmp_path / "driver.log") as driver:
        gets_what_its_acknowledgements_leave(broker.bootstrap, driver)
        gets_a_record_up_to_the_limit(broker.bootstrap, driver)
