"""The tool `kafkapy security`: creates everything that a first secured broker and its clients need.

    ca.crt, ca.key         the certificate authority        server.properties        the broker's configuration
    server.pem             key and certificate, broker      client.properties        for Java and kafkapy: SCRAM
    client.pem             key and certificate, client      librdkafka.properties    for kcat and confluent-kafka
    data                   the formatted log directory, with the SCRAM user

This module is not in the package `tools`, because that package may not import the broker's code for formatting.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafkapy.config import BrokerConfig
from kafkapy.controller.scram_credentials import ScramUpsertion, credential_record
from kafkapy.named_tuple import NamedTuple
from kafkapy.quorum.format_directory import format_node
from kafkapy.quorum.voters import DEFAULT_CONTROLLER_LISTENER, single_voter
from kafkapy.security.tls.authority import CLIENT_AUTH, SERVER_AUTH, CertificateAuthority
from kafkapy.security.tls.libcrypto import LibcryptoError
from kafkapy.storage.filesystem import Filesystem
from kafkapy.tools.declaration import Command, Example, Grammar, Tool
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError
from kafkapy.tools.scram_argument import parse_scram
from kafkapy.tools.tool import run_tool
from kafkapy.types import SystemClock, random_uuid

ORGANIZATION = "kafkapy"
SCRAM_MECHANISM = "SCRAM-SHA-512"
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
AUTHORITY_DAYS = 3650
DEFAULT_DAYS = 825  # the longest time that all clients accept
DEFAULT_PORT = 9093
LOOPBACK_HOST = "localhost"
LOOPBACK_ADDRESS = "127.0.0.1"
_PASSWORD_BYTES = 24
_PRIVATE = 0o600
_PUBLIC = 0o644


class Plan(NamedTuple):
    """The values that `init` uses: the directory for the files that it creates and the log directory `data`, the names
    of the host, the SCRAM user, the port of the SASL_SSL listener (the SSL listener has the next port), and the days
    for which certificates are valid.
    """

    directory: Path
    data: Path
    hosts: tuple[str, ...]
    user: str
    password: str
    port: int
    days: int

    @property
    def principal(self) -> str:
        """The subject of the client's certificate, such as `CN=alice,O=...`: the name by which the broker knows it."""
        return f"CN={self.user},O={ORGANIZATION}"


def init(arguments: Arguments) -> int:
    """Creates the files of `kafkapy security init` and formats the log directory. Returns the exit code.

    Raises ToolError if one of the files or the log directory exists already, or OpenSSL is missing.
    """
    plan = _plan(arguments)
    plan.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = {**_certificates(plan), **_configurations(plan)}
    existing = [path for path in (*(plan.directory / name for name in files), plan.data) if path.exists()]
    if existing:
        raise ToolError(f"{existing[0]} exists; choose another directory, or delete it")
    for name, content in files.items():
        _write(plan.directory / name, content, _PUBLIC if name == "ca.crt" else _PRIVATE)
    _format(plan)
    print(_summary(plan))
    return 0


def _plan(arguments: Arguments) -> Plan:
    hosts = tuple(arguments.values("host")) or (LOOPBACK_HOST,)
    for host in hosts:
        if not host or (any(character in host for character in " ,/:@") and not _is_address(host)):
            raise ToolError(f"--host {host}: expected is a host name or an IP address, without a port")
    user = arguments["user"]
    if not user.isascii() or not user.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise ToolError(f"--user {user}: expected are letters, digits, '-', '_' and '.'")
    port = arguments["port"]
    if not 1 <= port <= 65534:
        raise ToolError(f"--port {port}: expected is 1 to 65534; the next port is used too")
    if arguments["days"] < 1:
        raise ToolError(f"--days {arguments['days']}: expected is at least 1")
    directory = Path(arguments["directory"]).absolute()
    data = Path(arguments["data"]).absolute() if arguments.has("data") else directory / "data"
    return Plan(directory, data, hosts, user, secrets.token_urlsafe(_PASSWORD_BYTES), port, arguments["days"])


def _is_address(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, host)
    except OSError:
        return False
    return True


def _certificates(plan: Plan) -> dict[str, bytes]:
    """Returns the contents of the files with keys and certificates, by the name of the file."""
    names = dict.fromkeys((*plan.hosts, LOOPBACK_HOST, LOOPBACK_ADDRESS))
    try:
        authority = CertificateAuthority((("O", ORGANIZATION), ("CN", "kafkapy CA")), AUTHORITY_DAYS)
        server = authority.issue(
            (("O", ORGANIZATION), ("CN", plan.hosts[0])),
            plan.days,
            hosts=tuple(names),
            usages=(SERVER_AUTH, CLIENT_AUTH),
        )
        client = authority.issue((("O", ORGANIZATION), ("CN", plan.user)), plan.days)
    except LibcryptoError as error:
        raise ToolError(str(error)) from error
    return {
        "ca.crt": authority.certificate,
        "ca.key": authority.private_key,
        "server.pem": server.private_key + server.certificate + authority.certificate,
        "client.pem": client.private_key + client.certificate + authority.certificate,
    }


def _configurations(plan: Plan) -> dict[str, bytes]:
    """Returns the contents of the configuration files, by the name of the file."""
    jaas = f'{LOGIN_MODULE} required username="{plan.user}" password="{plan.password}";'
    address = f"{_bracketed(plan.hosts[0])}:{plan.port}"
    authority = str(plan.directory / "ca.crt")
    return {
        "server.properties": _properties(
            "A secured broker: clients authenticate by SCRAM (SASL_SSL) or by a certificate (SSL).", _server(plan)
        ),
        "client.properties": _properties(
            f"For Java's clients and the tools (--command-config), with --bootstrap-server {address}.",
            {
                "bootstrap.servers": address,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": SCRAM_MECHANISM,
                "sasl.jaas.config": jaas,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": authority,
            },
        ),
        "librdkafka.properties": _properties(
            "For kcat (-F) and other clients of librdkafka, by certificate: SCRAM needs librdkafka 2.6.1 or later.",
            {
                "bootstrap.servers": f"{_bracketed(plan.hosts[0])}:{plan.port + 1}",
                "security.protocol": "SSL",
                "ssl.ca.location": authority,
                "ssl.certificate.location": str(plan.directory / "client.pem"),
                "ssl.key.location": str(plan.directory / "client.pem"),
            },
        ),
    }


def _server(plan: Plan) -> dict[str, str]:
    """Returns the keys and values of the broker's configuration file."""
    is_local = all(host in (LOOPBACK_HOST, LOOPBACK_ADDRESS, "::1") for host in plan.hosts)
    bound = _bracketed(plan.hosts[0]) if is_local else ""
    advertised = _bracketed(plan.hosts[0])
    ports = {"SASL_SSL": plan.port, "SSL": plan.port + 1}
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": ",".join(f"{name}://{bound}:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(f"{name}://{advertised}:{port}" for name, port in ports.items()),
        "log.dirs": str(plan.data),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(plan.directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(plan.directory / "ca.crt"),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": SCRAM_MECHANISM,
        f"listener.name.sasl_ssl.{SCRAM_MECHANISM.lower()}.sasl.jaas.config": f"{LOGIN_MODULE} required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{plan.user};User:{plan.principal}",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _properties(comment: str, values: Mapping[str, str]) -> bytes:
    lines = [f"# {comment}", *(f"{key}={value}" for key, value in values.items())]
    return "".join(f"{line}\n" for line in lines).encode()


def _write(path: Path, content: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


def _format(plan: Plan) -> None:
    """Formats the log directory for a cluster that consists of one node. The node stores the SCRAM user at its first
    start.
    """
    config = BrokerConfig.load(str(plan.directory / "server.properties"), {})
    upsertion = ScramUpsertion(*parse_scram(f"{SCRAM_MECHANISM}=[name={plan.user},password={plan.password}]"))
    format_node(
        config.log_dirs,
        config.metadata_log_dir,
        config.node_id,
        Filesystem(),
        SystemClock(),
        voters=single_voter(config.node_id, random_uuid(), DEFAULT_CONTROLLER_LISTENER),
        credentials=[credential_record(upsertion)],
    )


def _summary(plan: Plan) -> str:
    here = plan.directory
    address = f"{_bracketed(plan.hosts[0])}:{plan.port}"
    return f"""\
Created in {here}: a certificate authority, certificates, and the super user {plan.user}, whose password is in the
client's files. Certificates are valid for {plan.days} days; keep ca.key secret, and away from the broker.

Start the broker:
  kafkapy broker start --config {here}/server.properties

Connect, from this machine or with copies of the files:
  kafkapy topics --bootstrap-server {address} --command-config {here}/client.properties --list
  kafka-topics.sh --bootstrap-server {address} --command-config {here}/client.properties --list
  kcat -F {here}/librdkafka.properties -L
  python -c "from kafkapy.client.admin import Admin; from kafkapy.config.properties import read_properties; \\
    print(list(Admin(read_properties('{here}/client.properties')).list_topics()))"
With the certificate instead of the password (port {plan.port + 1}): security.protocol=SSL, ssl.keystore.type=PEM,
ssl.keystore.location={here}/client.pem and the ssl.truststore keys of client.properties.
Allow others by `kafkapy acls`."""


_RUN = {"init": init}


def run(arguments: Arguments) -> int:
    """Carries out the subcommand that the arguments name; returns the exit code."""
    return _RUN[arguments.command](arguments)


COMMANDS = (
    Command(
        "init",
        "Create a certificate authority, certificates, a SCRAM user, a formatted data directory and the configuration "
        "files of a secured broker and its clients.",
        (
            Option(
                "directory", "The directory for all files; it is created.", "DIRECTORY", is_required=True,
                aliases=("d",), completes="directory",
            ),
            Option(
                "host", "A host name or IP address by which clients reach the broker; the first is advertised.",
                "HOST", is_many=True,
            ),
            Option(
                "data",
                "The log directory; without it the directory `data` next to the files.",
                "DIRECTORY",
                completes="directory",
            ),
            Option("port", "The port for SASL_SSL; the next one is for SSL.", "PORT", INTEGER, default=DEFAULT_PORT),
            Option("user", "The name of the super user.", "USER", default="admin"),
            Option("days", "How long the certificates are valid.", "DAYS", INTEGER, default=DEFAULT_DAYS),
        ),
    ),
)  # fmt: skip
TOOL = Tool(
    name="security",
    description="Creates keys, certificates, users and configurations.",
    run=run,
    commands=COMMANDS,
    grammar=Grammar.ARGPARSE4J,
    examples=(
        Example("A secured broker on this machine", "init --directory /srv/kafkapy"),
        Example("A secured broker for a network", "init -d /srv/kafkapy --host kafka.example.org 192.0.2.10"),
    ),
)


def main(arguments: Sequence[str]) -> int:
    return run_tool(TOOL, arguments)
