"""The tool kafka-acls of Apache Kafka and ours, each on a broker of both kinds: all print the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, kafka_directory
from tests.server_process import ServerProcess
from tests.tools.side_by_side import words_of
from tests.tools.tool_host import Done, ToolHost, run_ours

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
# Each line is a command; {n} is a number of the broker and the tool, so that every pair has resources of its own.
COMMANDS = """
--add --topic t{n} --allow-principal User:a --operation read
--add --topic t{n} --allow-principal User:a --operation DESCRIBECONFIGS --operation Read
--add --topic t{n} --allow-principal User:a --resource-pattern-type prefixed
--add --allow-principal User:alice --producer --consumer --group g{n} --topic t{n}
--add --allow-principal User:b --allow-host 1.2.3.4 --allow-host ::1 --deny-principal User:e --topic t{n}
--add --allow-principal User:bob{n} --producer --idempotent --transactional-id x{n} --topic q{n}
--add --cluster --allow-principal User:bob{n}
--add --deny-principal User:bob{n} --deny-host 1.1.1.1 --cluster --operation ClusterAction
--add --delegation-token tok{n} --allow-principal User:b --operation Describe
--add --user-principal User:z{n} --allow-principal User:b --operation CreateTokens
--list --principal User:bob{n}
--list --principal User:bob{n} --principal User:none
--list --topic t{n}
--list --topic t{n} --topic q{n} --group g{n} --transactional-id x{n} --user-principal User:z{n}
--list --topic t{n}-more --resource-pattern-type match
--list --topic t{n} --resource-pattern-type any
--list --topic t{n} --resource-pattern-type PREFIXED
--list --topic none{n}
--remove --topic t{n} --allow-principal User:a --operation Read --force
--remove --allow-principal User:bob{n} --producer --transactional-id x{n} --topic q{n} --force
--remove --topic t{n} --resource-pattern-type any --force
--list --topic t{n} --topic q{n} --group g{n} --resource-pattern-type any
--remove --cluster --force
--remove --group g{n} --force
"""
REFUSED = """
--list --add
--add
--add --topic t
--add --allow-principal User:a
--list --producer
--list --allow-host 1.1.1.1
--add --topic t --producer --operation Read --allow-principal User:a
--add --topic t --consumer --deny-principal User:a
--add --producer --allow-principal User:a
--add --consumer --topic t --allow-principal User:a
--add --consumer --topic t --group g --cluster --allow-principal User:a
--add --idempotent --topic t --allow-principal User:a
--add --topic t --principal User:a --allow-principal User:a
--add --topic t --allow-principal User:a --resource-pattern-type match
--remove --force
--add --allow-host 1.1.1.1 --topic t
--nonsense
"""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServerProcess]]:
    kafka = ApacheKafka(
        kafka_directory("4.3.0"), tmp_path_factory.mktemp("kafka"), properties=PROPERTIES, heap=("-Xmx512M",)
    )
    ours = BrokerProcess(tmp_path_factory.mktemp("ours"), PROPERTIES)
    with kafka, ours:
        yield [kafka, ours]


def in_order(text: str) -> list[list[str]]:
    """Returns the sections of an output without their order, which is undefined, as is that of the ACLs in each."""
    sections: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip().startswith("(principal="):
            sections[-1].append(line.strip())
        elif line:
            sections.append([line])
    return sorted([section[:1] + sorted(section[1:]) for section in sections if section])


def test_both_tools_print_the_same_on_both_brokers(host: ToolHost, brokers: list[ServerProcess]):
    for command in COMMANDS.strip().splitlines():
        printed = {}
        for number, broker in enumerate(brokers):
            for tool, run in (("kafka's", host.run), ("ours", run_ours)):
                n = f"{number}{tool[0]}"
                words = command.format(n=n).split()
                done: Done = run("acls", "--bootstrap-server", broker.bootstrap, *words)
                assert done.code == 0, (command, tool, done)
                printed[tool, number] = in_order(done.out.replace(n, ""))
        assert all(each == printed["kafka's", 0] for each in printed.values()), (command, printed)


def test_the_format_is_kafkas_to_the_byte(host: ToolHost, brokers: list[ServerProcess]):
    """Compares outputs with one ACL, whose order is defined; each tool has a topic with a name of the same length."""
    for broker in brokers:
        for words in ("--add --allow-principal User:a",) * 2 + (
            "--list",
            "--list --principal User:a",
            "--remove --force",
        ):
            theirs, ours = (
                run("acls", "--bootstrap-server", broker.bootstrap, "--topic", topic, *words.split())
                for run, topic in ((host.run, "one"), (run_ours, "two"))
            )
            assert ours == theirs._replace(out=theirs.out.replace("name=one", "name=two"))


def test_both_tools_refuse_the_same(host: ToolHost, brokers: list[ServerProcess]):
    for command in REFUSED.strip().splitlines():
        words = ("--bootstrap-server", brokers[0].bootstrap, *command.split())
        theirs, ours = host.run("acls", *words), run_ours("acls", *words)
        assert (ours.code, ours.out) == (theirs.code, theirs.out), command
        assert words_of(ours.err).strip() == words_of(theirs.err).strip(), command
    for words in (("--list",), ("--bootstrap-server", "a:1", "--bootstrap-controller", "a:1", "--list")):
        assert words_of(run_ours("acls", *words).err) == words_of(host.run("acls", *words).err)


def test_an_error_is_one_line(brokers: list[ServerProcess]):
    _, ours = brokers
    done = run_ours("acls", "--bootstrap-server", ours.bootstrap, "--add", "--topic", "t", "--allow-principal", "a")
    text = "expected a string in format principalType:principalName but got a"
    assert done == Done(1, "", f"Error while executing ACL command: {text}\n")


@pytest.mark.parametrize(("answer", "is_removed"), [("y\n", True), ("n\n", False), ("", False)])
def test_a_removal_is_confirmed(brokers: list[ServerProcess], answer, is_removed):
    _, ours = brokers
    server = ("--bootstrap-server", ours.bootstrap, "--topic", "asked", "--resource-pattern-type", "prefixed")
    assert run_ours("acls", *server, "--add", "--allow-principal", "User:a").code == 0
    done = run_ours("acls", *server, "--remove", input=answer)
    assert done.code == 0
    assert done.out == (
        "Are you sure you want to delete all ACLs for resource filter `ResourcePattern(resourceType=TOPIC, name=asked, "
        "patternType=PREFIXED)`? (y/n)\n"
    )
    assert (run_ours("acls", *server, "--list").out == "") == is_removed
