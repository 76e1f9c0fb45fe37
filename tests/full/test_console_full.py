"""The console's scenarios against Apache Kafka, of which the console is a client like any other."""

from __future__ import annotations

import pytest

from tests.console.conftest import (
    browser,
    changing,
    editing_page,
    editing_place,
    fill,
    page,
    place,
    visitor,
)
from tests.console.test_browser import *  # noqa: F403  (the same tests, with the fixtures of this module)
from tests.console.test_browser_changes import *  # noqa: F403
from tests.console.test_changes import *  # noqa: F403
from tests.console.test_pages import *  # noqa: F403
from tests.console_process import ConsoleProcess
from tests.peers import ApacheKafka, kafka_directory

pytestmark = [pytest.mark.full, pytest.mark.peer]
__all__ = ["browser", "changing", "editing_page", "editing_place", "page", "place", "visitor"]


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    directory = tmp_path_factory.mktemp("console-kafka")
    properties = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
    with ApacheKafka(kafka_directory("4.3.0"), directory, properties=properties) as running:
        fill(running.bootstrap)
        yield running


@pytest.fixture(scope="session")
def console(broker, tmp_path_factory):
    directory = tmp_path_factory.mktemp("console")
    with ConsoleProcess(directory, "--bootstrap-server", broker.bootstrap, "--name", "test") as running:
        yield running
