"""The tool kafka-delegation-tokens of Apache Kafka and ours, each on a broker of both kinds: all print the same."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client.admin import Admin
from kafkapy.config.properties import read_properties
from tests.security.token_brokers import Kafka, Kafkapy, eventually
from tests.tools.side_by_side import words_of
from tests.tools.tool_host import Done, ToolHost, run_here, run_ours

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
TOOL = "delegation-tokens"
# Each line is a command of the user whose name is the first word; {hmac} is the HMAC of the first token.
COMMANDS = """
ann --create --max-life-time-period -1
ann --create --max-life-time-period 100000 --renewer-principal User:bob --renewer-principal User:eve
ann --create --max-life-time-period 0 --owner-principal User:ann --owner-principal User:bob
admin --create --max-life-time-period 10000000 --owner-principal User:bob
ann --describe
ann --describe --owner-principal User:ann
ann --describe --owner-principal User:none --owner-principal User:ann
ann --describe --owner-principal User:none --renewer-principal User:ann
eve --describe --owner-principal User:ann
admin --describe --owner-principal User:bob
ann --renew --renew-time-period 1000000 --hmac {hmac}
ann --renew --renew-time-period -1 --hmac {hmac}
ann --expire --expiry-time-period 100000 --hmac {hmac} --renewer-principal User:bob
ann --expire --expiry-time-period -1 --hmac {hmac}
"""
REFUSED = """
ann --create --max-life-time-period -1 --owner-principal User:bob
ann --create --max-life-time-period -1 --renewer-principal Group:bob
ann --create --max-life-time-period -1 --renewer-principal bob
ann --describe --owner-principal none
ann --expire --expiry-time-period -1 --hmac YWJj
ann --renew --renew-time-period 7 --hmac YWJj
ann
ann --create
ann --create --describe
ann --create --renew --expire --describe
ann --renew
ann --renew --hmac a
ann --expire --hmac a
ann --expire --expiry-time-period -1
ann --create --max-life-time-period 1 --hmac x
ann --create --max-life-time-period 1 --renew-time-period 1
ann --create --max-life-time-period 1 --expiry-time-period 1
ann --renew --hmac a --renew-time-period 1 --renewer-principal x
ann --renew --hmac a --renew-time-period 1 --max-life-time-period 2
ann --renew --hmac a --renew-time-period 1 --expiry-time-period 2
ann --renew --hmac a --renew-time-period 1 --owner-principal x
ann --expire --hmac a --expiry-time-period 1 --max-life-time-period 1
ann --expire --hmac a --expiry-time-period 1 --owner-principal x
ann --describe --hmac x
ann --describe --renew-time-period 1
ann --describe --expiry-time-period 1
ann --describe --max-life-time-period 1
ann --nonsense
ann --describe --bootstrap-server x
"""
HMAC = re.compile(r"[A-Za-z0-9+/]{86}==")


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    with Kafka(tmp_path_factory.mktemp("kafka")) as kafka, Kafkapy(tmp_path_factory.mktemp("ours")) as ours:
        yield [kafka, ours]


@pytest.fixture(scope="module")
def logins(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Returns a function that returns the path of a user's properties."""
    directory: Path = tmp_path_factory.mktemp("logins")

    def path(user: str) -> str:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        (directory / user).write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={module} required username="{user}" password="{user}";\n'
        )
        return str(directory / user)

    return path


def outcome(done: Done) -> tuple[int, list[str]]:
    """Returns the exit code and the lines without ids, secrets and times; the order of tokens is undefined."""
    text = HMAC.sub("HMAC", done.out)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "TIME", re.sub(r"(?m)(?<![^\s:])[\w-]{22}(?= |$)", "ID", text))
    head, separator, rows = text.partition("TOKENID")
    return done.code, [*head.splitlines(), separator, *sorted(rows.splitlines())]


def test_both_tools_print_the_same_on_both_brokers(host: ToolHost, brokers: list[Any], logins: Callable[[str], str]):
    printed: dict[tuple[int, str], list[Any]] = {}
    for number, broker in enumerate(brokers):
        for tool, run in (("kafka's", host.run), ("ours", run_ours)):
            hmacs: list[str] = []
            for command in COMMANDS.strip().splitlines():
                user, *words = command.format(hmac=hmacs[0] if hmacs else "").split()
                server = ("--bootstrap-server", broker.bootstrap, "--command-config", logins(user))
                done = run(TOOL, *server, *words)
                assert done.code == 0, (command, tool, done)
                printed.setdefault((number, tool), []).append((command, outcome(done)))
                if "--create" in words:
                    hmacs += HMAC.findall(done.out)
                    await_token(broker, logins("admin"), hmacs[-1])
            for owner, given in (("ann", hmacs[1:3]), ("bob", hmacs[3:])):
                with Admin({**read_properties(logins(owner)), "bootstrap.servers": broker.bootstrap}) as admin:
                    for hmac in given:
                        admin.expire_delegation_token(b64decode(hmac))
    first = printed[0, "kafka's"]
    for each in printed.values():
        for theirs, ours in zip(first, each, strict=True):
            assert ours == theirs


def await_token(broker: Any, login: str, hmac: str) -> None:
    """Waits until the broker describes a token: Apache Kafka answers before its broker knows the token."""
    with Admin({**read_properties(login), "bootstrap.servers": broker.bootstrap}) as admin:
        eventually(lambda: hmac in {b64encode(each.hmac).decode() for each in admin.describe_delegation_tokens()})


def test_both_tools_refuse_the_same(
    host: ToolHost, brokers: list[Any], logins: Callable[[str], str], capsys: pytest.CaptureFixture[str]
):
    for command in REFUSED.strip().splitlines():
        user, *words = command.split()
        words = ["--bootstrap-server", brokers[0].bootstrap, "--command-config", logins(user), *words]
        theirs, ours = host.run(TOOL, *words), run_here(capsys)(TOOL, *words)
        assert ours.code == theirs.code == 1, command
        assert words_of(ours.err) == words_of(theirs.err), command
    server = ("--bootstrap-server", f"localhost:{brokers[1].plain_port}")
    assert words_of(run_ours(TOOL, *server, "--create").err) == words_of(host.run(TOOL, *server, "--create").err)


def test_clients_without_authentication_get_no_tokens(
    host: ToolHost, brokers: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "empty").write_text("")
    for broker in brokers:
        server = ("--bootstrap-server", f"localhost:{broker.plain_port}", "--command-config", str(tmp_path / "empty"))
        for words in ("--describe", "--create --max-life-time-period -1"):
            theirs, ours = host.run(TOOL, *server, *words.split()), run_here(capsys)(TOOL, *server, *words.split())
            assert (ours.code, words_of(ours.err)) == (1, words_of(theirs.err))


def test_an_invalid_hmac_is_named(brokers: list[Any], logins: Callable[[str], str], capsys: pytest.CaptureFixture[str]):
    server = ("--bootstrap-server", brokers[1].bootstrap, "--command-config", logins("ann"))
    done = run_here(capsys)(TOOL, *server, "--renew", "--renew-time-period", "-1", "--hmac", "!!")
    assert (done.code, done.err) == (1, "--hmac is not base64: Only base64 data is allowed\n")
