"""Shell completion: what bash offers, and where the scripts are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy.__main__ import TOOLS
from kafkapy.broker_command import OPTIONS as BROKER_OPTIONS
from kafkapy.broker_command import SWITCHES as BROKER_SWITCHES
from kafkapy.client import Consumer, TopicPartition
from kafkapy.client.admin import Admin, NewTopic
from kafkapy.tools import completion, declared_tools
from kafkapy.tools.completion_names import client_properties, print_names
from kafkapy.tools.job_catalog import job_paths
from tests.broker_process import BrokerProcess
from tests.tools.tool_host import ROOT, Done, run_ours

LINES = (
    ("kafkapy console-cons", "console-consumer"),
    ("kafkapy console-consumer --isol", "--isolation-level"),
    ("kafka-storage.sh format --ign", "--ignore-formatted"),
    ("kafkapy broker ", "start --help"),
    ("kafkapy broker start --", "--config --override --ephemeral --until-end-of-input --help"),
    ("kafkapy broker start --override log.retention.h", "log.retention.hours="),
    ("kafkapy broker start --override = log.retention.h", "log.retention.hours="),  # as bash divides --override=log...
    ("kafkapy topics --create --config retention.m", "retention.ms="),
    ("kafkapy jobs submit hot", "hot-search"),
    ("kafkapy jobs generate --data search-t", "search-terms"),
    ("kafkapy configs --entity-type client", "clients client-metrics"),
    ("kafka-configs --entity-type broker-", "broker-loggers"),
    ("kafkapy transactions --bootstrap-server localhost:9092 des", "describe describe-producers"),
    ("kafkapy transactions --bootstrap-server localhost:9092 describe --trans", "--transactional-id"),
    ("kafkapy completion ", "bash zsh fish --help"),
    ("kafkapy completion zsh --", "--install --help"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns an empty home directory in which completion was installed for every shell."""
    home = tmp_path_factory.mktemp("home")
    for shell in completion.SHELLS:
        assert install(home, shell).code == 0
    return home


def install(home: Path, *words: str) -> Done:
    variables = {"XDG_DATA_HOME": "", "XDG_CONFIG_HOME": "", "BASH_COMPLETION_USER_DIR": ""}
    return run_ours("completion", *words, "--install", HOME=str(home), **variables)


@pytest.mark.parametrize(("line", "offered"), LINES, ids=[line for line, _ in LINES])
def test_bash_completes(line: str, offered: str, home: Path):
    words = line.split(" ")
    script = (
        f"source {home}/.local/share/bash-completion/completions/{words[0]}; "
        f"COMP_WORDS=({' '.join(word or chr(39) * 2 for word in words)}); COMP_CWORD={len(words) - 1}; "
        f'_kafkapy {words[0]}; echo "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == (offered, "")


def test_bash_completes_all_jobs(home: Path):
    script = (
        f"source {home}/.local/share/bash-completion/completions/kafkapy; "
        "COMP_WORDS=(kafkapy jobs submit ''); COMP_CWORD=3; _kafkapy kafkapy; echo \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == list(job_paths())


def test_each_name_of_a_program_has_a_file_where_the_shell_looks_for_it(home: Path):
    bash, fish = home / ".local/share/bash-completion/completions", home / ".config/fish/completions"
    for name in ("kafkapy", "kafka-topics", "kafka-topics.sh", "kafka-e2e-latency.sh"):
        assert "complete -o default -F _kafkapy kafkapy " in (bash / name).read_text()
        assert (fish / f"{name}.fish").read_text().startswith("# fish completion of kafkapy")
    zsh = (home / ".local/share/zsh/site-functions/_kafkapy").read_text()
    assert "kafka-topics.sh" in zsh.splitlines()[0].split()


def test_installing_again_replaces_links_and_nothing_else(tmp_path: Path):
    (tmp_path / "kafka-topics.sh").write_text("another program's")
    (tmp_path / "kafka-configs.sh").symlink_to("missing")
    done = run_ours("completion", "bash", "--install", str(tmp_path))
    assert done == Done(
        1,
        f"{tmp_path}/kafkapy\n",
        f"kafkapy completion: {tmp_path}/kafka-topics.sh exists already and was left unchanged\n",
    )
    assert (tmp_path / "kafka-topics.sh").read_text() == "another program's"
    assert os.readlink(tmp_path / "kafka-configs.sh") == "kafkapy"


def test_a_directory_that_cannot_be_written_to_is_an_error(tmp_path: Path):
    (tmp_path / "file").touch()
    done = run_ours("completion", "bash", "--install", str(tmp_path / "file"))
    assert (done.code, done.out) == (1, "")
    assert done.err == f"kafkapy completion: File exists: {tmp_path}/file\n"


def test_zsh_is_told_about_the_directory(tmp_path: Path):
    done = install(tmp_path, "zsh")
    assert done.out.splitlines()[1].endswith(f"fpath=({tmp_path}/.local/share/zsh/site-functions $fpath)")


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_script_holds_tools_flags_and_values(shell: str):
    done = run_ours("completion", shell)
    assert done.code == 0
    for word in (*TOOLS, "kafka-console-consumer", "isolation-level", "log.retention.hours=", "hot-search"):
        assert word in done.out


@pytest.mark.parametrize("words", [[], ["tcsh"], ["bash", "zsh"], ["bash", "--install", "a", "b"]])
def test_wrong_arguments_print_the_usage(words: list[str]):
    done = run_ours("completion", *words)
    assert (done.code, done.out) == (1, "")
    assert done.err == completion.USAGE + "\n"


def test_the_broker_has_the_flags_that_are_completed():
    (start,) = declared_tools.BROKER.commands
    assert tuple(option.flag for option in start.options) == (*BROKER_OPTIONS, *BROKER_SWITCHES)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_parse_the_script(shell: str, home: Path):
    path = home / (
        ".local/share/zsh/site-functions/_kafkapy" if shell == "zsh" else ".config/fish/completions/kafkapy.fish"
    )
    done = subprocess.run([shell, "-n", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_topics_and_groups_of_the_running_broker_are_completed(shell: str, home: Path, broker: BrokerProcess):
    make_names(broker.bootstrap)
    variables = {"PATH": f"{program_folder(home)}:{os.environ['PATH']}", "HOME": str(home)}
    for line, offered in (
        (
            f"kafkapy topics --bootstrap-server {broker.bootstrap} --describe --topic compl",
            ["completed-1", "completed-2"],
        ),
        (f"kafkapy consumer-groups --bootstrap-server {broker.bootstrap} --group completing-", ["completing-group"]),
        ("kafkapy consume completed-", ["completed-1", "completed-2"]),
    ):
        environment = {**os.environ, **variables, "KAFKAPY_BOOTSTRAP_SERVERS": broker.bootstrap}
        done = subprocess.run(
            completing_command(shell, home, line), env=environment, capture_output=True, text=True, check=True
        )
        # fish prints a description after each name.
        names = sorted(word for text in done.stdout.splitlines() for word in text.partition("\t")[0].split())
        assert (names, done.stderr) == (offered, "")


def completing_command(shell: str, home: Path, line: str) -> list[str]:
    """Returns a command that prints what the shell offers at the end of a line."""
    words = line.split()
    if shell == "bash":
        script = (
            f"source {home}/.local/share/bash-completion/completions/kafkapy; COMP_WORDS=({line}); "
            f'COMP_CWORD={len(words) - 1}; _kafkapy kafkapy; echo "${{COMPREPLY[@]}}"'
        )
    elif shell == "fish":
        script = f"source {home}/.config/fish/completions/kafkapy.fish; complete -C '{line}'"
    else:
        # zsh completes on a terminal only: the call's effect is observed at compadd, which gets the names.
        path = home / ".local/share/zsh/site-functions/_kafkapy"
        script = (
            "compdef() { : }; compadd() { print -l -- ${(M)@:#" + words[-1] + "*} }; "
            f"typed=({' '.join(words)}); source {path}; _kafkapy_names "
            f"{'group' if 'consumer-groups' in words else 'topic'}"
        )
    return [shell, "-c", script]


def program_folder(home: Path) -> Path:
    """Returns a folder with a program `kafkapy`."""
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "kafkapy"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m kafkapy "$@"\n')
    program.chmod(0o755)
    return folder


def make_names(bootstrap: str) -> None:
    """Makes two topics and a group, and a group whose name must not reach a shell."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        known = admin.list_topics()
        for name in ("completed-1", "completed-2"):
            if name not in known:
                admin.create_topics([NewTopic(name, 1)]).check()
    for group in ("completing-group", "completing-$(touch /tmp/x)"):
        with Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
            consumer.commit({TopicPartition("completed-1", 0): 0})


def test_names_that_a_shell_would_expand_are_left_out(broker: BrokerProcess, capsys: pytest.CaptureFixture[str]):
    make_names(broker.bootstrap)
    assert print_names(["group", "--", "kafkapy", f"--bootstrap-server={broker.bootstrap}"]) == 0
    assert [name for name in capsys.readouterr().out.split() if "completing" in name] == ["completing-group"]


@pytest.mark.parametrize(
    "words", ["--bootstrap-server localhost:1", "--bootstrap-server = localhost:1", "--bootstrap-server", ""]
)
def test_without_a_broker_nothing_is_offered_and_nothing_printed(words: str, capsys, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("KAFKAPY_BOOTSTRAP_SERVERS", raising=False)
    assert print_names(["topic", "--", "kafkapy", "topics", *words.split()]) == 1
    assert capsys.readouterr() == ("", "")


def test_the_profile_of_the_command_line_names_the_brokers(monkeypatch, tmp_path: Path):
    profiles = tmp_path / "kafkapy" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "test.properties").write_text("bootstrap.servers=named:1\nclient.id=me\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("KAFKAPY_PROFILE", raising=False)
    for words in (["kafkapy", "--profile", "test", "topics"], ["kafkapy", "--profile=test", "topics"]):
        assert client_properties(words) == {"bootstrap.servers": "named:1", "client.id": "me"}
