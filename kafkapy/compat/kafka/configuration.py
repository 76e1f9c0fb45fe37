"""The options of kafka-python's clients as a configuration of kafkapy's client.

Each option is either a configuration key of kafkapy's client, or used by the class that it belongs to, or refused: an
option that cannot be honoured raises KafkaConfigurationError if its value is not the default.
"""

from __future__ import annotations

import re
import selectors
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkapy.client.cluster import Node
from kafkapy.client.connection import open_socket
from kafkapy.client.environment import SYSTEM, Environment
from kafkapy.client.proxy import Proxy
from kafkapy.compat.kafka.errors import KafkaConfigurationError
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

if TYPE_CHECKING:
    from ssl import SSLContext

VERSION = "3.0.12"  # of kafka-python
INFINITE = float("inf")
_PORT_WITHOUT_ONE = 9092
_FOR_INFINITY = (1 << 31) - 1
_OLDEST_VERSION = (0, 10)
_NO_DELAY = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]

# The options of all clients, with their defaults.
COMMON: dict[str, Any] = {
    "bootstrap_servers": "localhost",
    "client_id": None,
    "request_timeout_ms": 30000,
    "connections_max_idle_ms": 540000,
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 30000,
    "max_in_flight_requests_per_connection": 5,
    "receive_message_max_bytes": 100_000_000,
    "receive_buffer_bytes": None,
    "send_buffer_bytes": None,
    "socket_options": _NO_DELAY,
    "retry_backoff_ms": 100,
    "metadata_max_age_ms": 300000,
    "client_dns_lookup": "use_all_dns_ips",
    "security_protocol": "PLAINTEXT",
    "ssl_context": None,
    "ssl_check_hostname": True,
    "ssl_cafile": None,
    "ssl_certfile": None,
    "ssl_keyfile": None,
    "ssl_crlfile": None,
    "ssl_password": None,
    "api_version": None,
    "bootstrap_timeout_ms": 30000,
    "metric_reporters": [],
    "metrics_num_samples": 2,
    "metrics_sample_window_ms": 30000,
    "selector": selectors.DefaultSelector,
    "sasl_mechanism": None,
    "sasl_plain_username": None,
    "sasl_plain_password": None,
    "sasl_kerberos_name": None,
    "sasl_kerberos_service_name": "kafka",
    "sasl_kerberos_domain_name": None,
    "sasl_oauth_token_provider": None,
    "proxy_url": None,
    "socks5_proxy": None,
    "kafka_client": None,
}
# Options whose only possible value is the default, with the reason.
REFUSED: dict[str, str] = {
    "receive_message_max_bytes": "the limit of a response is fixed at 1 GiB",
    "metric_reporters": "there are no reporters of metrics",
    "metrics_num_samples": "the metrics are totals, without windows",
    "metrics_sample_window_ms": "the metrics are totals, without windows",
    "sasl_kerberos_name": "the name is made of sasl_kerberos_service_name and the broker's host",
    "sasl_kerberos_domain_name": "the name is made of sasl_kerberos_service_name and the broker's host",
    "client_dns_lookup": "the addresses of a name are tried in the order of the system",
    "kafka_client": "the networking belongs to kafkapy's client",
    "enable_incremental_fetch_sessions": "fetch sessions are used with every broker that has them",
}
# Options that are configuration keys of the same name, with `.` instead of `_`.
_SAME = (
    "client_id",
    "request_timeout_ms",
    "connections_max_idle_ms",
    "reconnect_backoff_ms",
    "reconnect_backoff_max_ms",
    "retry_backoff_ms",
    "metadata_max_age_ms",
    "security_protocol",
)
_PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"


class ClientSettings(NamedTuple):
    """The settings of one client of kafkapy.

    `properties` are configuration keys; `environment` has what no key can express, such as socket options and a
    selector.
    """

    properties: dict[str, Any]
    environment: Environment


def options(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all options of a client: the options that the application has given, and the defaults of the others.

    Raises KafkaConfigurationError for an option that kafkapy cannot honour; the caller refuses unknown names.
    """
    chosen = {**defaults, **given}
    for name, reason in REFUSED.items():
        if name in given and name in defaults and given[name] != defaults[name] and not _is_none(name, given[name]):
            raise KafkaConfigurationError(f"kafkapy.compat.kafka cannot honour {name}={given[name]!r}: {reason}")
    return chosen


def _is_none(name: str, value: Any) -> bool:
    return value is None or (name == "metric_reporters" and not value)


def unknown_options(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> set[str]:
    """Returns the names that are not options of the client."""
    return set(given) - set(defaults)


def client_settings(chosen: Mapping[str, Any], same: Iterable[str] = ()) -> ClientSettings:
    """Converts kafka-python's options to the settings of a client of kafkapy. Reads the files of TLS.

    `chosen` has the values of all options. The options that producers, consumers and admin clients have in common are
    always converted. `same` names further options of this kind of client; with `.` instead of `_`, their names are
    configuration keys of kafkapy. Raises KafkaConfigurationError.
    """
    properties: dict[str, Any] = {"bootstrap.servers": _addresses(chosen["bootstrap_servers"])}
    for name in (*_SAME, *same):
        if chosen[name] is not None:
            properties[name.replace("_", ".")] = _number(chosen[name])
    # Java's client caps its growing backoff at a second.
    properties["retry.backoff.max.ms"] = max(1000, int(chosen["retry_backoff_ms"]))
    properties["reconnect.backoff.max.ms"] = max(
        int(chosen["reconnect_backoff_ms"]), int(chosen["reconnect_backoff_max_ms"])
    )
    for name in ("receive_buffer_bytes", "send_buffer_bytes"):
        if chosen[name] is not None:
            properties[name.replace("_", ".")] = chosen[name]
    check_version(chosen["api_version"])
    _add_sasl(properties, chosen)
    return ClientSettings(properties, _environment(chosen))


def _number(value: Any) -> Any:
    """Converts a float to an integer, and infinity to the largest integer that configuration keys accept.

    Returns all other values unchanged.
    """
    if isinstance(value, float):
        return _FOR_INFINITY if value == INFINITE else int(value)
    return value


def _addresses(configured: Any) -> list[str]:
    texts = configured.split(",") if isinstance(configured, str) else list(configured)
    return [_with_port(text.strip()) for text in texts]


def _with_port(text: str) -> str:
    """Returns a broker's address with a port: adds the default port 9092 if `text` has none.

    An IPv6 address without a port may lack its brackets; the result has them.
    """
    if re.fullmatch(r"\[.*\]:\d+|[^:\[\]]+:\d+", text):
        return text
    host = text.removeprefix("[").removesuffix("]")
    return f"[{host}]:{_PORT_WITHOUT_ONE}" if ":" in host else f"{host}:{_PORT_WITHOUT_ONE}"


def check_version(version: Any) -> None:
    """Raises KafkaConfigurationError for an `api_version` before 0.10, whose brokers do not say which requests they
    know."""
    if version is None or version == "auto":
        return
    numbers = tuple(int(each) for each in version.split(".")) if isinstance(version, str) else tuple(version)
    if numbers < _OLDEST_VERSION:
        raise KafkaConfigurationError(
            f"kafkapy.compat.kafka cannot honour api_version={version!r}: brokers before 0.10 are not supported"
        )


def _add_sasl(properties: dict[str, Any], chosen: Mapping[str, Any]) -> None:
    if not chosen["security_protocol"].upper().startswith("SASL"):
        return
    mechanism = chosen["sasl_mechanism"]
    if mechanism is None:
        raise KafkaConfigurationError(f"sasl_mechanism is missing, which {chosen['security_protocol']} needs")
    properties["sasl.mechanism"] = mechanism
    if mechanism == "PLAIN" or mechanism.startswith("SCRAM-"):
        name, password = chosen["sasl_plain_username"], chosen["sasl_plain_password"]
        if name is None or password is None:
            raise KafkaConfigurationError(f"sasl_plain_username or sasl_plain_password is missing for {mechanism}")
        module = _PLAIN_LOGIN if mechanism == "PLAIN" else _SCRAM_LOGIN
        properties["sasl.jaas.config"] = f"{module} required username={_quoted(name)} password={_quoted(password)};"
    elif mechanism == "OAUTHBEARER":
        provider = chosen["sasl_oauth_token_provider"]
        if provider is None:
            raise KafkaConfigurationError("sasl_oauth_token_provider is missing, which OAUTHBEARER needs")
        properties["sasl.login.callback.handler.class"] = provider.token
    elif mechanism == "GSSAPI":
        properties["sasl.kerberos.service.name"] = chosen["sasl_kerberos_service_name"]


def _quoted(text: str) -> str:
    """Returns a text as a quoted string of a JAAS configuration."""
    escaped = "".join(f"\\{char}" if char in '"\\' else char for char in text)
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r") + '"'


def _environment(chosen: Mapping[str, Any]) -> Environment:
    environment = SYSTEM
    extra = [each for each in chosen["socket_options"] or () if tuple(each) not in _NO_DELAY]
    if extra:
        environment = environment._replace(connect=_connector(extra))
    url = chosen["proxy_url"] or chosen["socks5_proxy"]
    if url:
        try:
            environment = environment._replace(proxy=Proxy.from_url(url))
        except ConfigError as error:
            raise KafkaConfigurationError(f"The option proxy_url cannot be used: {error}") from error
    if chosen["selector"] is not selectors.DefaultSelector:
        environment = environment._replace(make_selector=chosen["selector"])
    if chosen["security_protocol"].upper() in ("SSL", "SASL_SSL"):
        context = chosen["ssl_context"] or _tls_context(chosen)
        environment = environment._replace(find_tls_context=lambda: context)
    return environment


def _connector(extra: Iterable[Any]) -> Callable[[Node, tuple[int, int]], socket.socket]:
    """Returns a function that opens a connection to a node and sets the options `extra` of the socket.

    Each option has the arguments of `socket.setsockopt`: level, name and value.
    """
    wanted = list(extra)

    def connect(node: Node, buffers: tuple[int, int]) -> socket.socket:
        opened = open_socket(node, buffers)
        for each in wanted:
            opened.setsockopt(*each)
        return opened

    return connect


def _tls_context(chosen: Mapping[str, Any]) -> SSLContext:
    """Returns the TLS context that the options `ssl_*` describe. Raises KafkaConfigurationError."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(chosen["ssl_check_hostname"])
    try:
        if chosen["ssl_cafile"]:
            context.load_verify_locations(Path(chosen["ssl_cafile"]))
        else:
            context.load_default_certs()
        if chosen["ssl_certfile"]:
            context.load_cert_chain(chosen["ssl_certfile"], chosen["ssl_keyfile"], chosen["ssl_password"])
        if chosen["ssl_crlfile"]:
            context.load_verify_locations(Path(chosen["ssl_crlfile"]))
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        if chosen.get("ssl_ciphers"):
            context.set_ciphers(chosen["ssl_ciphers"])
    except (OSError, ValueError) as error:
        raise KafkaConfigurationError(f"The options of TLS cannot be used: {error}") from error
    return context
