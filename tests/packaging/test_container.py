"""The container's entry point: the environment of a compose file of the image apache/kafka configures our broker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import pytest

from kafkapy.client import Producer
from kafkapy.client.admin import Admin, NewTopic
from kafkapy.config.container_environment import DEFAULT_CLUSTER_ID, properties_of
from kafkapy.config.properties import parse_properties
from kafkapy.container_command import FILES, main, parse_words, write_configuration
from tests.harness.quorum_nodes import wait_until
from tests.peers import kafka_directory
from tests.ports import free_ports

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging" / "container"
DOCKERFILE = (PACKAGING / "Dockerfile").read_text()
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
# The variables of the examples in Apache Kafka's documentation of the image.
COMPOSE = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_HEAP_OPTS": "-Xmx512M",
    "KAFKA_LOG4J_LOGGERS": "kafka.controller=WARN,kafka.server=WARN",
    "CLUSTER_ID": CLUSTER_ID,
}


def entry_point() -> list[str]:
    """Returns the words of the image's ENTRYPOINT."""
    (line,) = [each for each in DOCKERFILE.splitlines() if each.startswith("ENTRYPOINT ")]
    words: list[str] = json.loads(line.removeprefix("ENTRYPOINT "))
    return words


def compose_variables(directory: Path) -> tuple[dict[str, str], str]:
    """Returns the environment of the compose file with free ports and its log directory, and the broker's address."""
    outside, inside, controller = free_ports(3)
    return {
        **COMPOSE,
        "KAFKA_LISTENERS": f"CONTROLLER://localhost:{controller},PLAINTEXT_HOST://localhost:{outside},"
        f"PLAINTEXT://localhost:{inside}",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT_HOST://localhost:{outside},PLAINTEXT://localhost:{inside}",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": f"1@localhost:{controller}",
        "KAFKA_LOG_DIRS": str(directory / "combined-logs"),
    }, f"localhost:{outside}"


@contextmanager
def container(directory: Path, variables: Mapping[str, str], *words: str) -> Iterator[subprocess.Popen[str]]:
    """Returns a context manager that runs the entry point with an environment until the node is ready.

    The files of the container are below `directory`. At the end the node is stopped as a container engine stops it.
    """
    directory.mkdir(exist_ok=True)
    program, command, *flags = entry_point()
    assert (program, command) == ("/usr/bin/kafkapy", "container-start")
    assert dict(zip(flags[::2], flags[1::2], strict=True)) == FILES
    files = [part for flag in FILES for part in (flag, str(directory / flag.removeprefix("--")))]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "CLUSTER_ID"))}
    with subprocess.Popen(
        [sys.executable, "-m", "kafkapy", command, *files, *words],
        env={**inherited, **variables, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            seen = list(takewhile(lambda line: " ready: " not in line, process.stdout))
            assert process.poll() is None, "".join(seen)
            yield process
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_the_environment_of_a_compose_file_configures_the_broker(tmp_path: Path):
    variables, bootstrap = compose_variables(tmp_path)
    for number in range(2):  # the directories are formatted once
        with container(tmp_path, variables):
            with Admin(bootstrap_servers=bootstrap) as admin:
                assert admin.describe_cluster().cluster_id == CLUSTER_ID
            with Producer(bootstrap_servers=bootstrap) as producer:
                assert producer.send("from-compose", "value").result(60).offset == number
    assert (tmp_path / "final").stat().st_mode & 0o777 == 0o600


def test_a_controller_and_a_broker_of_a_compose_file_form_a_cluster(tmp_path: Path):
    """The nodes have the image's cluster id, because none is set; listeners come from the advertised ones."""
    client, controller = free_ports(2)
    shared = {
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": f"1@localhost:{controller}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    }
    first = {
        **shared,
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "controller",
        "KAFKA_LISTENERS": f"CONTROLLER://localhost:{controller}",
        "KAFKA_LOG_DIRS": str(tmp_path / "controller-data"),
    }
    second = {
        **shared,
        "KAFKA_PROCESS_ROLES": "broker",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://localhost:{client}",
        "KAFKA_LOG_DIRS": str(tmp_path / "broker-data"),
    }
    with (
        container(tmp_path / "controller", first),
        container(tmp_path / "broker", second, "KAFKA_NODE_ID=2"),
        Admin(bootstrap_servers=f"localhost:{client}") as admin,
    ):
        # The broker says that it is ready when the controller has unfenced it. The metadata record that unfences it
        # reaches the broker a little later, and until then the broker does not list itself.
        wait_until(lambda: bool(admin.describe_cluster().brokers), "the broker does not list itself")
        cluster = admin.describe_cluster()
        assert cluster.cluster_id == DEFAULT_CLUSTER_ID
        assert [(each.node_id, each.port) for each in cluster.brokers] == [(2, client)]
        admin.create_topics([NewTopic("made-in-a-container", 1)]).check()


def test_our_own_compose_file_configures_the_broker(tmp_path: Path):
    """Its variables, with other ports and folders."""
    outside, inside = free_ports(2)
    text = (PACKAGING / "compose.yaml").read_text()
    variables = dict(re.findall(r"^ +(KAFKA_\w+): (.*)$", text, re.MULTILINE))
    assert len(variables) > 10
    for name in ("KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"):
        value = variables[name].replace(":9092", f":{outside}").replace(":29092", f":{inside}")
        variables[name] = value.replace("broker:", "localhost:").replace("//:", "//localhost:")
    variables["KAFKA_LOG_DIRS"] = str(tmp_path / "data")
    with container(tmp_path, variables), Producer(bootstrap_servers=f"localhost:{inside}") as producer:
        assert producer.send("from-our-compose", "value").result(60).offset == 0


@pytest.mark.peer
def test_the_properties_are_those_of_the_image(tmp_path: Path):
    """The image's own program writes the file from the same variables, with and without a mounted file."""
    variables, _ = compose_variables(tmp_path)
    variables["KAFKA_LISTENER_NAME_PLAINTEXT__HOST_SCRAM___SHA___256_SASL_JAAS_CONFIG"] = 'x y \\\n  z="1";'
    for mounted in ("", "node.id=7\nlog.retention.ms=5\n"):
        directory = tmp_path / ("mounted" if mounted else "alone")
        for name in ("defaults", "mounted", "final"):
            (directory / name).mkdir(parents=True)
        for name in ("log4j2.yaml", "tools-log4j2.yaml"):
            for place in ("defaults", "final"):
                (directory / place / name).write_text("Configuration:\n  Loggers:\n    Root:\n      level: INFO\n")
        (directory / "defaults" / "server.properties").write_text("node.id=9\n")
        (directory / "final" / "server.properties").touch()
        if mounted:
            (directory / "mounted" / "server.properties").write_text(mounted)
        flags = ("default-configs-dir", "defaults"), ("mounted-configs-dir", "mounted"), ("final-configs-dir", "final")
        words = [part for flag, name in flags for part in (f"--{flag}", str(directory / name))]
        libraries = f"{kafka_directory('4.3.0')}/libs/*"
        done = subprocess.run(
            ["java", "-XX:TieredStopAtLevel=1", "-cp", libraries, "kafka.docker.KafkaDockerWrapper", "setup", *words],
            env={"PATH": os.environ["PATH"], **variables, "KAFKA_LOG_DIRS": str(directory / "logs")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        files = {f"--{name}": str(directory / name / "server.properties") for name in ("defaults", "mounted")}
        files["--final"] = str(directory / "ours.properties")
        write_configuration(files, properties_of({**variables, "KAFKA_LOG_DIRS": str(directory / "logs")}))
        theirs = parse_properties((directory / "final" / "server.properties").read_text("latin-1"))
        assert parse_properties((directory / "ours.properties").read_text("latin-1")) == theirs


def test_without_variables_and_file_the_defaults_are_used(tmp_path: Path):
    files = {flag: str(tmp_path / flag) for flag in FILES}
    assert write_configuration(files, {}) == files["--defaults"]
    assert write_configuration(files, {"node.id": "ü"}) == files["--final"]
    assert parse_properties(Path(files["--final"]).read_text("latin-1")) == {"node.id": "ü"}


def test_a_file_that_exists_already_becomes_private(tmp_path: Path):
    files = {flag: str(tmp_path / flag) for flag in FILES}
    final = Path(files["--final"])
    final.write_text("node.id=1\n")
    final.chmod(0o644)
    write_configuration(files, {"ssl.keystore.password": "secret"})
    assert final.stat().st_mode & 0o777 == 0o600


def test_flags_precede_the_other_words():
    files, rest = parse_words(["--final=/x", "--mounted", "/y", "--override", "a=b"])
    assert (files["--final"], files["--mounted"], rest) == ("/x", "/y", ["--override", "a=b"])


def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert main(["--final"]) == 1
    monkeypatch.setenv("KAFKA_LOG4J_ROOT_LOGLEVEL", "LOUD")
    assert main(["--defaults", "/nowhere", "--mounted", "/nowhere", "--final", str(tmp_path / "final")]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "kafkapy container-start: --final needs the path of a file",
        "kafkapy container-start: LOUD is not the level of a logger: accepted are ERROR, WARN, INFO, ...",
    ]
