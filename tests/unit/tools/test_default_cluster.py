"""The default cluster of a command line: its sources, their order, and profiles that cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.tools import metadata_quorum
from kafkapy.tools.default_cluster import fill_in, profile_names
from kafkapy.tools.option import Option, ToolError, UsageError
from kafkapy.tools.option_parser import OptionParser
from kafkapy.tools.tool import parse

OPTIONS = (
    Option("bootstrap-server", "", "servers"),
    Option("bootstrap-controller", "", "servers"),
    Option("producer.config", "", "file", completes="file", is_deprecated=True),
    Option("command-config", "", "file", completes="file"),
    Option("config", "", "name=value"),
    Option("command-property", "", "key=value"),
    Option("list", ""),
    Option("help", ""),
)


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    directory = tmp_path / "kafkapy" / "profiles"
    directory.mkdir(parents=True)
    (directory / "default.properties").write_text("bootstrap.servers=usual:1\n")
    (directory / "prod.properties").write_text("bootstrap.servers=prod:1,prod:2\nsasl.jaas.config=secret\n")
    (directory / "prod.properties").chmod(0o600)
    return directory


def found(words: str, options: tuple[Option, ...] = OPTIONS, **environment: str) -> tuple[Any, Any]:
    """Returns the servers and the configuration file of a command line."""
    arguments = OptionParser(options, fill_in(options, environment)).parse(words.split())
    config = arguments["command-config"] if arguments.declares("command-config") else None
    return arguments["bootstrap-server"], config


def test_the_flag_counts_before_all_others(profiles: Path, tmp_path: Path):
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "KAFKAPY_PROFILE": "prod", "KAFKAPY_BOOTSTRAP_SERVERS": "x:1"}
    assert found("--list --bootstrap-server flag:1", **environment) == ("flag:1", None)


def test_the_file_of_the_command_line_names_the_cluster(profiles: Path, tmp_path: Path):
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\n")
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "KAFKAPY_PROFILE": "prod"}
    assert found(f"--list --command-config {file}", **environment) == ("file:1", str(file))


def test_a_named_profile_counts_before_the_variable(profiles: Path, tmp_path: Path):
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "KAFKAPY_BOOTSTRAP_SERVERS": "x:1"}
    assert found("--list", **environment) == ("x:1", None)
    path = str(profiles / "prod.properties")
    assert found("--list", **environment, KAFKAPY_PROFILE="prod") == ("prod:1,prod:2", path)
    assert profile_names(environment) == ["default", "prod"]


def test_without_a_variable_the_default_profile_counts(profiles: Path, tmp_path: Path):
    assert found("--list", XDG_CONFIG_HOME=str(tmp_path)) == ("usual:1", None)
    assert found("--list", HOME=str(tmp_path / "elsewhere")) == (None, None)


def test_a_file_without_servers_is_kept_with_the_servers_of_the_profile(profiles: Path, tmp_path: Path):
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\n")
    words = f"--list --command-config {file}"
    assert found(words, XDG_CONFIG_HOME=str(tmp_path), KAFKAPY_PROFILE="prod") == ("prod:1,prod:2", str(file))


@pytest.mark.parametrize("words", ["--bootstrap-controller c:1", "--help", "--command-property bootstrap.servers=p:1"])
def test_a_command_line_that_needs_no_default_gets_none(words: str):
    assert found(words, KAFKAPY_BOOTSTRAP_SERVERS="x:1")[0] is None


def test_a_tool_may_use_a_cluster_only_if_it_is_named():
    options = (Option("bootstrap-server", "", "servers", has_default_cluster=False),)
    assert found("", options, KAFKAPY_BOOTSTRAP_SERVERS="x:1") == (None, None)


def test_a_required_flag_is_satisfied_by_the_default():
    options = (Option("bootstrap-server", "", "servers", is_required=True),)
    assert found("", options, KAFKAPY_BOOTSTRAP_SERVERS="x:1") == ("x:1", None)
    with pytest.raises(UsageError, match="Missing required"):
        found("", options, HOME="/nonexistent")


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (b"bootstrap.servers=a:1\n\x00\x01\n", 0o600, "is damaged: line 2 contains the control character 0x00"),
        (b"security.protocol=SSL\n", 0o600, "is damaged: it does not set bootstrap.servers"),
        (b"bootstrap.servers=\\u12\n", 0o600, "Malformed"),
        (b"bootstrap.servers=a:1\nssl.keystore.password=x\n", 0o640, "contains ssl.keystore.password and other users"),
        (b"bootstrap.servers=a:1\nsasl.jaas.config=x\n", 0o604, "run chmod 600 "),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused_in_one_line(content, mode, message, profiles: Path, tmp_path: Path):
    (profiles / "bad.properties").write_bytes(content)
    (profiles / "bad.properties").chmod(mode)
    with pytest.raises(ToolError, match=message) as raised:
        found("--list", XDG_CONFIG_HOME=str(tmp_path), KAFKAPY_PROFILE="bad")
    assert "\n" not in str(raised.value)
    assert "bad.properties" in str(raised.value)


def test_others_may_read_a_profile_without_a_password(profiles: Path, tmp_path: Path):
    (profiles / "open.properties").write_text("bootstrap.servers=a:1\nssl.truststore.certificates=public\n")
    (profiles / "open.properties").chmod(0o644)
    assert found("--list", XDG_CONFIG_HOME=str(tmp_path), KAFKAPY_PROFILE="open")[0] == "a:1"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("prdo", "did you mean prod?"),
        ("zzzzzz", "profiles: default, prod"),
        ("../x", "not the name"),
        ("a\nb", "not the name"),
    ],
)
def test_a_profile_that_does_not_exist_is_named(name, message, profiles: Path, tmp_path: Path):
    with pytest.raises(ToolError, match=message.replace("?", r"\?")) as raised:
        found("--list", XDG_CONFIG_HOME=str(tmp_path), KAFKAPY_PROFILE=name)
    assert "\n" not in str(raised.value)


def test_a_tool_without_a_flag_for_files_refuses_a_secured_profile(profiles: Path, tmp_path: Path):
    options = (Option("bootstrap-server", "", "servers"),)
    with pytest.raises(ToolError, match="this tool cannot use the profile"):
        found("", options, XDG_CONFIG_HOME=str(tmp_path), KAFKAPY_PROFILE="prod")


def test_a_tool_may_name_its_cluster_by_another_flag():
    options = (Option("broker-list", "", "servers"), Option("topic", "", "topic"))
    arguments = OptionParser(options, fill_in(options, {"KAFKAPY_BOOTSTRAP_SERVERS": "x:1"})).parse(["--topic", "t"])
    assert arguments["broker-list"] == "x:1"
    both = (Option("bootstrap-server", "", "servers"), *options)
    arguments = OptionParser(both, fill_in(both, {"KAFKAPY_BOOTSTRAP_SERVERS": "x:1"})).parse(["--broker-list", "1,2"])
    assert (arguments["bootstrap-server"], arguments["broker-list"]) == ("x:1", "1,2")


def test_invalid_servers_of_the_environment_are_named_with_their_source():
    with pytest.raises(ToolError, match=r"^\$KAFKAPY_BOOTSTRAP_SERVERS is localhost: .*the port is missing"):
        found("--list", KAFKAPY_BOOTSTRAP_SERVERS="localhost")
    assert found("--list", KAFKAPY_BOOTSTRAP_SERVERS="a:1, [::1]:2")[0] == "a:1, [::1]:2"


def test_invalid_servers_of_a_profile_are_named_with_their_source(profiles: Path, tmp_path: Path):
    (profiles / "default.properties").write_text("bootstrap.servers=a:b\n")
    with pytest.raises(ToolError, match=r"^bootstrap.servers in the profile .*default.properties is a:b: Invalid url"):
        found("--list", XDG_CONFIG_HOME=str(tmp_path))


def test_a_profile_is_never_the_file_of_a_controller_to_add(profiles: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("KAFKAPY_PROFILE", "prod")
    _, arguments = parse(metadata_quorum.TOOL, ["describe", "--status"])
    assert arguments["command-config"] == str(profiles / "prod.properties")
    _, arguments = parse(metadata_quorum.TOOL, ["add-controller"])
    assert (arguments["bootstrap-server"], arguments["command-config"]) == ("prod:1,prod:2", None)
    assert metadata_quorum.main(["add-controller"]) == 1
    assert "You must supply the configuration file of the controller" in capsys.readouterr().err
