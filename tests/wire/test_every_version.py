"""Every API in every version that kafkapy announces, compared with Apache Kafka 4.3 and 3.9.

The same requests are sent in the same order to the three brokers. The responses must be equal except for ids, times and
addresses. Apache Kafka 4.3 is the reference for the versions that it serves, 3.9 for the versions that 4.x removed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.server.api_registry import ApiRegistry
from kafkapy.server.handlers import HANDLER_MODULES, broker_versions
from tests.broker_process import BrokerProcess
from tests.old_client import ask
from tests.peers import ApacheKafka
from tests.ports import free_port
from tests.server_process import ServerProcess
from tests.wire.every_version import Case, cases, conversation, prepare

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "auto.create.topics.enable": "false",
}
Answers = dict[tuple[ApiKey, str, int], Any]

# The cases in which kafkapy intentionally differs from Apache Kafka, with the reason.
OURS: dict[tuple[ApiKey, str], tuple[range, str]] = {
    (ApiKey.DESCRIBE_CONFIGS, "of a topic"): (range(1), "Kafka 3.9 says of no key that it has its default"),
    (ApiKey.REMOVE_RAFT_VOTER, "of another cluster"): (range(9), "the message names the cluster's id, which is random"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "a bad operation"): (range(9), "Kafka fails on it, we say INVALID_REQUEST"),
}
# Versions that Kafka 4.3 announces for librdkafka only, and refuses.
ANNOUNCED_ONLY = {ApiKey.PRODUCE: range(3)}


def versions_of(server: ServerProcess) -> dict[int, range]:
    answer = ask(server, ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    return {each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys}


def converse(server: ServerProcess) -> Answers:
    """Returns the server's response by API, case and version; None means that it ends the connection."""
    with server:
        ids = prepare(server)
        served = versions_of(server)
        return {
            (case.key, case.name, version): conversation(server, case, version, ids)
            for case in cases()
            for version in served.get(case.key, ())
            if version in case.versions
        }


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    listener = {"kafkapy.metrics.listener": f"127.0.0.1:{free_port()}"}  # announces the telemetry APIs
    return converse(BrokerProcess(tmp_path_factory.mktemp("kafkapy"), PROPERTIES | listener))


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory, kafka_43: Path) -> Answers:
    found = converse(ApacheKafka(kafka_43, tmp_path_factory.mktemp("kafka-43"), properties=PROPERTIES, dynamic=True))
    return {each: answer for each, answer in found.items() if each[2] not in ANNOUNCED_ONLY.get(each[0], ())}


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory, kafka_39: Path) -> Answers:
    return converse(ApacheKafka(kafka_39, tmp_path_factory.mktemp("kafka-39"), properties=PROPERTIES))


def is_our_own(case: Case, version: int) -> bool:
    versions, _ = OURS.get((case.key, case.name), (range(0), ""))
    return version in versions


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.key.name}-{case.name}".replace(" ", "-"))
def test_the_same_answer_as_apache_kafka(ours: Answers, newest: Answers, older: Answers, case: Case) -> None:
    asked = [(key, name, version) for key, name, version in ours if (key, name) == (case.key, case.name)]
    assert asked
    differences = []
    for each in asked:
        answer = ours[each]
        judges = [found[each] for found in (newest, older) if each in found]
        assert answer is not None or None in judges, f"{each} ends the connection"
        if is_our_own(case, each[2]):
            continue
        if each in newest and answer != newest[each]:
            differences.append((each[2], "4.3", answer, newest[each]))
        if each in older and each not in newest and without_messages(answer) != without_messages(older[each]):
            differences.append((each[2], "3.9", answer, older[each]))
    assert not differences, "\n".join(
        f"version {version}:\n  kafkapy {answer}\n  {judge}     {theirs}"
        for version, judge, answer, theirs in differences
    )


def without_messages(answer: Any) -> Any:
    """Removes error messages, because texts change from release to release."""
    if isinstance(answer, dict):
        return {name: without_messages(each) for name, each in answer.items() if name != "error_message"}
    return [without_messages(each) for each in answer] if isinstance(answer, list) else answer


def test_telemetry_is_announced_only_while_something_receives_it(tmp_path: Path, kafka_43: Path) -> None:
    """Apache Kafka announces both APIs only with a receiver plugin, and serves them nevertheless."""
    telemetry = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
    asked = [case for case in cases() if case.key in telemetry]
    seen = []
    for server in (BrokerProcess(tmp_path / "ours"), ApacheKafka(kafka_43, tmp_path / "kafka-43")):
        with server:
            assert not {*telemetry} & versions_of(server).keys()
            answers = [conversation(server, case, 0, {}) for case in asked]
        for answer in answers:
            answer.pop("client_instance_id", None)
            answer.pop("subscription_id", None)
        seen.append(answers)
    assert seen[0] == seen[1]


def test_every_api_and_version_is_asked(ours: Answers) -> None:
    """Every announced API has a case for each announced version."""
    asked = {(key, version) for key, _, version in ours}
    # The response to ApiVersions is built from the same table.
    served = ApiRegistry(HANDLER_MODULES, versions=broker_versions(has_zookeeper=False)).served()
    announced = {(each.key, version) for each in served for version in range(each.lowest, each.highest + 1)}
    assert announced <= asked, sorted(f"{key.name} {version}" for key, version in announced - asked)
