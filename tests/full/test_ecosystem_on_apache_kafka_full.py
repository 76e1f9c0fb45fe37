"""The sample of tests/ecosystem on Apache Kafka: the same programs have the same results there.

The appender of Log4j 1 is not among them: Apache Kafka 4 refuses its requests, which are of version 2 of Produce.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ecosystem.streams_run import PROPERTIES
from tests.ecosystem.test_connect import copy_files
from tests.ecosystem.test_log_appenders import LOG4J_2, log4j_2_settings, log_lines
from tests.ecosystem.test_streams_examples import run_examples
from tests.ecosystem.test_streams_groups import count_words
from tests.peers import ApacheKafka

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.fixture
def server(tmp_path: Path, kafka_43: Path) -> ApacheKafka:
    """Returns a server that is not started yet."""
    return ApacheKafka(kafka_43, tmp_path / "broker", properties=PROPERTIES)


def test_standalone_files_survive_a_killed_broker(server: ApacheKafka, tmp_path: Path, kafka_43: Path) -> None:
    copy_files(server, tmp_path, kafka_43)


def test_only_errors_become_records(server: ApacheKafka, tmp_path: Path) -> None:
    log_lines(server, tmp_path, LOG4J_2, log4j_2_settings, "log4j2.configurationFile")


def test_the_word_count_of_the_release_runs_unmodified(server: ApacheKafka, tmp_path: Path) -> None:
    count_words(server, tmp_path, lambda: None)


def test_the_examples_have_the_documents_results(server: ApacheKafka, tmp_path: Path) -> None:
    run_examples(server, tmp_path)
