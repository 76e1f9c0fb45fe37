"""The tool `kafkapy console`: a web application that shows and changes clusters, in a process of its own."""

from __future__ import annotations

import gc
import getpass
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kafkapy.client.oauth_login import TOKEN_URL_KEY
from kafkapy.config.listener_security import SASL_PROTOCOLS
from kafkapy.config.properties import read_properties
from kafkapy.console.masking import MaskRule, parse_rule
from kafkapy.console.metrics_addresses import addresses_of
from kafkapy.console.settings import OAUTH_MECHANISM, Login, Settings
from kafkapy.console.spark_jobs import DEFAULT_JOBS_TOPIC
from kafkapy.ephemeral import call_at_end_of_input
from kafkapy.errors import ConfigError
from kafkapy.metrics.http_server import parse_address
from kafkapy.tools.bootstrap import COMMAND_CONFIG
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.metrics import PageAddress
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool, stops_by
from kafkapy.tools.zookeeper.connect_string import parse_connect_string

DEFAULT_ADDRESS = "localhost:9080"
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", OAUTH_MECHANISM)
# The description of a large cluster has some hundred thousand objects without cycles. With the interpreter's thresholds
# the collector would search them again and again while they are read, which takes half of a page's time.
_GC_THRESHOLDS = (100_000, 20, 20)
_EXTRA = "pip install 'kafkapy[console]'"


def run(arguments: Arguments) -> int:
    """Serves the console until Ctrl-C, or prints the hash of a password if the command line requests it.

    Returns the exit code.
    """
    if arguments.positionals[:1] == ("hash-password",) and len(arguments.positionals) == 2:
        return _print_hash(arguments.positionals[1])
    if arguments.positionals:
        raise UsageError("The console takes no words but `hash-password NAME`")
    try:
        host, port = parse_address(arguments["listener"])
    except ValueError as error:
        raise UsageError(f"--listener: {error}") from None
    try:
        from kafkapy.console.application import Console
        from kafkapy.http.serving import Limits, TlsFiles, WebServer, is_loopback, listen
    except ImportError as error:
        raise ToolError(f"the console needs {error.name}, which is not installed: {_EXTRA}") from None
    tls = _tls(arguments)
    clusters = _clusters(arguments)
    login = _login(arguments)
    if not is_loopback(host) and login is Login.TOKEN:
        raise ToolError(
            f"{host} is not an address of the loopback interface: give --login cluster, or --users FILE, so that only "
            "users who log in can reach the clusters"
        )
    _check_sasl(login, next(iter(clusters.values())))
    _check_oauth(arguments, login, next(iter(clusters.values())))
    settings = _settings(arguments, clusters, host, login)
    bound = listen(host, port)
    settings = replace(settings, port=bound.getsockname()[1])
    logging.getLogger("kafkapy.console").setLevel(logging.INFO)
    console = Console(settings)
    shown = f"{'http' if tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{settings.port}/"
    if login is Login.TOKEN:
        shown += f"login?token={quote(settings.token)}"

    def print_address() -> None:
        print(f"kafkapy console ready: {shown}", flush=True)

    server = WebServer(
        console.application,
        bound,
        tls=None if tls is None else TlsFiles(*tls),
        limits=Limits(arguments["max-connections"]),
        on_ready=print_address,
    )
    console.start_sampling()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    if arguments["until-end-of-input"]:
        call_at_end_of_input(server.stop)
    with stops_by(server.stop):
        try:
            server.run()
        finally:
            console.close()
    return 0


def _settings(arguments: Arguments, clusters: dict[str, dict[str, Any]], host: str, login: Login) -> Settings:
    """Returns the settings without the port, according to the command line. Raises UsageError or ConfigError."""
    return Settings(
        clusters,
        _hosts(arguments, host),
        login,
        users=_users(arguments),
        mechanism=arguments["mechanism"],
        allow_changes=arguments["allow-changes"],
        audit_topic=arguments["audit-topic"],
        metadata_directory=arguments["metadata-directory"],
        registries=_registries(arguments, list(clusters)),
        mask_rules=_mask_rules(arguments),
        jobs_topic=arguments["jobs-topic"],
        history_topic=arguments["history-topic"],
        zookeepers=_zookeepers(arguments, list(clusters)),
        metrics=_metrics(arguments, list(clusters)),
        is_secure=arguments["tls-certificate"] is not None,
    )


def _print_hash(name: str) -> int:
    """Prints a line for the file of users (--users), with the user `name` and the hash of the password. Returns 0.

    Asks for the password if standard input is a terminal; otherwise reads it from standard input.
    """
    from kafkapy.http.passwords import hash_password

    password = getpass.getpass(f"Password of {name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not password:
        raise ToolError("a password has at least one character")
    if ":" in name or not name.strip():
        raise ToolError(f"{name!r} cannot be the name of a user: it contains a colon, or nothing")
    print(f"{name}:{hash_password(password)}")
    return 0


def _clusters(arguments: Arguments) -> dict[str, dict[str, Any]]:
    """Returns a dict from the name of a cluster to its client properties, according to the command line.

    The first cluster is given by --bootstrap-server; each --cluster gives a further one. Raises UsageError or
    ConfigError.
    """
    found: dict[str, dict[str, Any]] = {}
    if arguments["bootstrap-server"] is not None:
        properties: dict[str, Any] = {}
        if arguments["command-config"] is not None:
            properties.update(read_properties(arguments["command-config"]))
        found[arguments["name"]] = {**properties, "bootstrap.servers": arguments["bootstrap-server"]}
    for word in arguments.values("cluster"):
        name, separator, place = word.partition("=")
        if not name or not separator or not place:
            raise UsageError(f"--cluster {word}: NAME=HOST:PORT or NAME=FILE is expected")
        if name in found:
            raise UsageError(f"--cluster {word}: there is a cluster {name} already")
        found[name] = dict(read_properties(place)) if Path(place).is_file() else {"bootstrap.servers": place}
        if not found[name].get("bootstrap.servers"):
            raise ConfigError(f"{place} does not set bootstrap.servers")
    if not found:
        raise UsageError("No cluster is named: give --bootstrap-server HOST:PORT, or --cluster NAME=HOST:PORT")
    return found


def _mask_rules(arguments: Arguments) -> tuple[MaskRule, ...]:
    try:
        return tuple(map(parse_rule, arguments.values("mask")))
    except ValueError as error:
        raise UsageError(f"--mask: {error}") from None


def _zookeepers(arguments: Arguments, clusters: list[str]) -> dict[str, str]:
    """Returns a dict from the name of a cluster to the connect string of its ZooKeeper, from the options --zookeeper.

    An address without a name belongs to the first of `clusters`. Raises UsageError.
    """
    found: dict[str, str] = {}
    for word in arguments.values("zookeeper"):
        name, separator, address = word.partition("=")
        if not separator:
            name, address = clusters[0], word
        if name not in clusters:
            raise UsageError(f"--zookeeper {word}: there is no cluster {name}")
        try:
            parse_connect_string(address)
        except ValueError as error:
            raise UsageError(f"--zookeeper {word}: {error}") from None
        found[name] = address
    return found


def _metrics(arguments: Arguments, clusters: list[str]) -> dict[str, tuple[PageAddress, ...]]:
    """Returns a dict from the name of a cluster to the addresses of its brokers' metrics listeners (--metrics).

    A value without a name belongs to the first of `clusters`. Raises UsageError, ConfigError or ToolError.
    """
    found: dict[str, tuple[PageAddress, ...]] = {}
    for word in arguments.values("metrics"):
        name, separator, place = word.partition("=")
        if not separator or "/" in name or Path(word).is_file():
            name, place = clusters[0], word
        if name not in clusters:
            raise UsageError(f"--metrics {word}: there is no cluster {name}")
        found[name] = found.get(name, ()) + addresses_of(place)
    return found


def _registries(arguments: Arguments, clusters: list[str]) -> dict[str, str]:
    """Returns a dict from the name of a cluster to the URL of its schema registry.

    The URLs come from the options --schema-registry NAME=URL; a URL without NAME belongs to the first of `clusters`.
    Raises UsageError.
    """
    found: dict[str, str] = {}
    for word in arguments.values("schema-registry"):
        name, separator, url = word.partition("=")
        if not separator or "/" in name:
            name, url = clusters[0], word
        if name not in clusters:
            raise UsageError(f"--schema-registry {word}: there is no cluster {name}")
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"--schema-registry {word}: URL or NAME=URL is expected, such as http://localhost:8081")
        found[name] = url
    return found


def _login(arguments: Arguments) -> Login:
    if arguments.has("users"):
        if arguments.has("login") and arguments["login"] != Login.FILE.value:
            raise UsageError("--users is for --login file")
        return Login.FILE
    try:
        login = Login(arguments["login"])
    except ValueError:
        raise UsageError(f"--login {arguments['login']}: token, file or cluster is expected") from None
    if login is Login.FILE:
        raise UsageError("--login file needs --users FILE")
    if arguments["mechanism"] not in MECHANISMS:
        raise UsageError(f"--mechanism {arguments['mechanism']}: one of {', '.join(MECHANISMS)} is expected")
    return login


def _check_sasl(login: Login, properties: dict[str, Any]) -> None:
    """Raises UsageError if users log in with their credentials of the first cluster, but its configuration has no SASL:
    the cluster would accept every name and password."""
    protocol = str(properties.get("security.protocol", "PLAINTEXT")).upper()
    if login is Login.CLUSTER and protocol not in SASL_PROTOCOLS:
        raise UsageError(
            "--login cluster needs a security.protocol with SASL in the configuration of the first cluster "
            f"(--command-config); it is {protocol}, with which every name and password would be accepted"
        )


def _check_oauth(arguments: Arguments, login: Login, properties: dict[str, Any]) -> None:
    """Raises UsageError if users log in by OAuth and the first cluster's configuration names no OAuth provider."""
    if login is Login.CLUSTER and arguments["mechanism"] == OAUTH_MECHANISM and not properties.get(TOKEN_URL_KEY):
        raise UsageError(
            f"--mechanism {OAUTH_MECHANISM} needs the key {TOKEN_URL_KEY} in the configuration of the first cluster "
            "(--command-config)"
        )


def _users(arguments: Arguments) -> Any:
    if not arguments.has("users"):
        return None
    from kafkapy.http.passwords import PasswordFile

    return PasswordFile(Path(arguments["users"]))


def _tls(arguments: Arguments) -> tuple[Path, Path] | None:
    certificate, key = arguments["tls-certificate"], arguments["tls-key"]
    if (certificate is None) != (key is None):
        raise UsageError("--tls-certificate and --tls-key must be given together")
    return None if certificate is None else (Path(certificate), Path(key))


def _hosts(arguments: Arguments, host: str) -> frozenset[str]:
    from kafkapy.http.guard import LOOPBACK_NAMES

    given = {name.strip() for word in arguments.values("host") for name in word.split(",") if name.strip()}
    return frozenset({host, *given, *LOOPBACK_NAMES})


TOOL = Tool(
    name="console",
    description="Serves a web application that shows clusters: topics, records, groups and their lag, brokers, "
    "transactions, permissions. It changes something only with --allow-changes. `console hash-password NAME` prints a "
    "line for the file of --users.",
    run=run,
    options=(
        Option("bootstrap-server", "The brokers of the first cluster, as HOST1:PORT1,HOST2:PORT2.", "HOST:PORT"),
        COMMAND_CONFIG,
        Option("name", "The name of the first cluster on the pages.", "NAME", default="cluster"),
        Option(
            "cluster",
            "A further cluster: its name, and its brokers or a file with a client's configuration; may be repeated.",
            "NAME=HOST:PORT|FILE",
            completes="file",
        ),
        Option(
            "listener",
            "The address to listen on; port 0 is any free port. An address outside of the loopback interface needs "
            "--users or --login cluster.",
            "HOST:PORT",
            default=DEFAULT_ADDRESS,
        ),
        Option(
            "host",
            "Further host names by which browsers address the console, separated by commas.",
            "NAMES",
        ),
        Option(
            "login",
            "How users log in: with the token that is printed at the start, with the users of a file (--users), or "
            "with their credentials of the first cluster, so that its ACLs decide.",
            "token|file|cluster",
            default=Login.TOKEN.value,
            choices=tuple(each.value for each in Login),
        ),
        Option(
            "users", "A file with a line for each user, from `console hash-password NAME`.", "FILE", completes="file"
        ),
        Option(
            "mechanism",
            "The SASL mechanism of --login cluster. With OAUTHBEARER users give a client id and a secret, which the "
            "console exchanges for a token at sasl.oauthbearer.token.endpoint.url of --command-config.",
            "MECHANISM",
            default=MECHANISMS[0],
            choices=MECHANISMS,
        ),
        Option("tls-certificate", "The certificate chain in PEM, to serve HTTPS.", "FILE", completes="file"),
        Option("tls-key", "The private key of the certificate in PEM.", "FILE", completes="file"),
        Option("allow-changes", "Allow users to change clusters: produce, create, configure, reset, delete."),
        Option(
            "audit-topic",
            "The topic to which a record is written for each change; an empty name writes none.",
            "TOPIC",
            default="__kafkapy_console_audit",
        ),
        Option(
            "schema-registry",
            "The schema registry of the first cluster, or of the cluster NAME, to decode Avro, JSON Schema and "
            "Protobuf; may be repeated. Needs the extra `schemas`.",
            "URL|NAME=URL",
        ),
        Option(
            "jobs-topic",
            "The topic, of each cluster, to which Spark jobs write their figures (their option --progress-topic).",
            "TOPIC",
            default=DEFAULT_JOBS_TOPIC,
        ),
        Option(
            "mask",
            "Content that no user sees, for the topics with a name, or a pattern with * and ?: any of key, value, "
            "header.NAME and json.PATH, separated by commas; may be repeated.",
            "TOPIC=PART,PART",
        ),
        Option(
            "history-topic",
            "The compacted topic, of each cluster, in which the history of a week is stored, so that it survives the "
            "console; an empty name stores none.",
            "TOPIC",
            default="",
        ),
        Option(
            "zookeeper",
            "The ZooKeeper in which old consumers of the first cluster, or of the cluster NAME, keep their offsets, as "
            "HOST:PORT[,HOST:PORT ...][/CHROOT]; may be repeated. Every user sees these groups.",
            "ADDRESS|NAME=ADDRESS",
        ),
        Option(
            "metrics",
            "The metrics listeners of the brokers of the first cluster, or of the cluster NAME: their addresses, the "
            "configuration file of a broker, or a file with addresses and credentials; may be repeated. They tell what "
            "Kafka's protocol cannot: places of records, delays by quotas, sizes of fetches. Every user sees this.",
            "URL,URL|FILE|NAME=...",
            completes="file",
        ),
        Option(
            "metadata-directory",
            "A log directory of this machine to read the metadata log of the first cluster from, for a broker whose "
            "controller has no listener. Every user sees the metadata.",
            "DIRECTORY",
            completes="directory",
        ),
        Option("until-end-of-input", "End when the standard input ends, for a process that runs the console."),
        Option("max-connections", "The number of connections at a time.", "COUNT", INTEGER, default=200),
    ),
    needs_arguments=False,
    examples=(
        Example("A cluster on this machine", "--bootstrap-server localhost:9092"),
        Example("Two clusters", "--cluster test=test1:9092 --cluster live=/etc/kafkapy/live.properties"),
        Example(
            "For a team: TLS, and the users of the cluster",
            "--bootstrap-server kafka1:9093 --command-config client.properties --listener 0.0.0.0:9080 "
            "--host console.example.org --login cluster --tls-certificate chain.pem --tls-key key.pem",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
