"""Reads a configuration of confluent-kafka and translates it to the keys of kafkapy's clients."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from kafkapy.client.configuration import MOST_IN_FLIGHT_IN_ORDER
from kafkapy.compat.confluent_kafka._config_keys import (
    ACCEPTED,
    KEYS,
    REFUSED,
    TRANSLATED,
    TRANSLATED_IF_SET,
    Alias,
    Callback,
    Choice,
    Number,
    Switch,
    Text,
)
from kafkapy.compat.confluent_kafka._errors import INVALID_ARG, KafkaError, KafkaException
from kafkapy.compat.confluent_kafka._hashing import PARTITIONERS
from kafkapy.compat.confluent_kafka._security_config import security_properties
from kafkapy.config.client_table import ADMIN_ROWS, CONSUMER_ROWS, PRODUCER_ROWS
from kafkapy.config.row import INT_MAX
from kafkapy.decimal_text import is_number

log = logging.getLogger("kafkapy.compat")

PRODUCER, CONSUMER, ADMIN = "producer", "consumer", "adminclient"
_ROLES = {PRODUCER: "P", CONSUMER: "C", ADMIN: "*"}
# The least time that commits of a consumer, and other calls without a time-out of their own, may take.
_LEAST_API_TIMEOUT_MS = 60_000
_ROWS = {PRODUCER: PRODUCER_ROWS, CONSUMER: CONSUMER_ROWS, ADMIN: ADMIN_ROWS}
# More requests than this one connection never has in flight.
_MOST_REQUESTS = 1000
_CODECS_WITH_LEVEL = ("gzip", "lz4", "zstd")
_RESETS = {
    "smallest": "earliest",
    "earliest": "earliest",
    "beginning": "earliest",
    "largest": "latest",
    "latest": "latest",
    "end": "latest",
    "error": "none",
}
# The callbacks that a configuration can contain, and the message if one is not callable.
_CALLBACKS = {
    "error_cb": "expected error_cb property as a callable function",
    "throttle_cb": "expected throttle_cb property as a callable function",
    "stats_cb": "expected stats_cb property as a callable function",
    "oauth_cb": "expected oauth_cb property as a callable function",
}
# The callbacks of one kind of client: role and message.
_CALLBACKS_OF_ROLE = {
    "on_delivery": (PRODUCER, "on_delivery requires a callable object"),
    "on_commit": (CONSUMER, "on_commit requires a callable object"),
}


def invalid(message: str) -> KafkaException:
    """Returns the exception for an invalid configuration."""
    return KafkaException(KafkaError(INVALID_ARG, message))


class Settings:
    """The typed values of one configuration, by librdkafka's keys, and the callbacks that it contains.

    `conf` is the dictionary of the program; `more` has its keyword arguments, which override those of `conf`. `role` is
    PRODUCER, CONSUMER or ADMIN. After the constructor, only `replace` changes a value. Raises KafkaException for an
    unknown key (and names the nearest known key), for an invalid value, and for a key that kafkapy cannot honour.
    """

    def __init__(self, role: str, conf: Mapping[str, Any] | None, more: Mapping[str, Any]) -> None:
        if (conf is None and not more) or (conf is not None and not isinstance(conf, Mapping)):
            raise TypeError("expected configuration dict")
        self.role = role
        self.callbacks: dict[str, Callable[..., Any]] = {}
        self.logger: Any = None
        self._values: dict[str, Any] = {}
        given = {**(conf or {}), **more}
        # A topic's settings may be in a dictionary of their own, as in the first versions of confluent-kafka.
        given = {**(given.pop("default.topic.config", None) or {}), **given}
        for key, value in given.items():
            self._set(str(key), value)

    def __getitem__(self, key: str) -> Any:
        """Returns the value of a key, or its default."""
        if key in self._values:
            return self._values[key]
        row = KEYS[key]
        return None if isinstance(row, Alias | Callback) else row.default

    def replace(self, key: str, value: Any) -> None:
        """Replaces the value of a key. `set_sasl_credentials` calls this method for the user name and the password."""
        self._values[key] = value

    def is_set(self, key: str) -> bool:
        """Returns whether the program has set a key."""
        return key in self._values

    def _set(self, key: str, value: Any) -> None:
        if key in _CALLBACKS:
            if not callable(value):
                raise TypeError(_CALLBACKS[key])
            self.callbacks[key] = value
        elif key == "logger":
            self.logger = value
        elif key in _CALLBACKS_OF_ROLE:
            role, message = _CALLBACKS_OF_ROLE[key]
            if role != self.role:
                raise invalid(_unknown(key))
            if value is not None and not callable(value):
                raise invalid(message)
            if value is not None:
                self.callbacks[key] = value
        else:
            self._set_value(key, value)

    def _set_value(self, key: str, value: Any) -> None:
        row = KEYS.get(key)
        if isinstance(row, Alias):
            key = row.of
            row = KEYS[key]
        if row is None or isinstance(row, Alias):
            raise invalid(_unknown(key))
        if isinstance(row, Callback):
            raise invalid(f'Property "{key}" must be set through its own argument: it is a function of librdkafka')
        if value is None:
            self._values.pop(key, None)
            return
        typed = _typed(key, row, value)
        if row.roles != "*" and row.roles != _ROLES[self.role]:
            kind = "producer" if row.roles == "P" else "consumer"
            log.warning(
                "Configuration property %s is a %s property and will be ignored by this %s instance",
                key, kind, self.role,
            )  # fmt: skip
            return
        if key in REFUSED and typed != row.default:
            raise invalid(f'Configuration property "{key}" cannot be honoured by kafkapy: {REFUSED[key]}')
        if key in ACCEPTED and typed != row.default:
            log.debug("Configuration property %s has no effect in kafkapy: %s", key, ACCEPTED[key])
        self._values[key] = typed

    def properties(self) -> dict[str, Any]:
        """Returns the configuration of kafkapy's producer, consumer or admin client. Reads the files of TLS keys.

        Raises KafkaException for values that contradict each other.
        """
        found: dict[str, Any] = {name: self[key] for key, name in TRANSLATED.items()}
        found.update({name: self[key] for key, name in TRANSLATED_IF_SET.items() if self.is_set(key)})
        found["bootstrap.servers"] = self._addresses()
        found["connections.max.idle.ms"] = self["connections.max.idle.ms"] or -1
        found["socket.connection.setup.timeout.max.ms"] = self["socket.connection.setup.timeout.ms"]
        found["request.timeout.ms"] = self["socket.timeout.ms"]
        least_ms = 0 if self.role == ADMIN else _LEAST_API_TIMEOUT_MS
        found["default.api.timeout.ms"] = max(self["socket.timeout.ms"], least_ms)
        refresh_ms = self["topic.metadata.refresh.interval.ms"]
        found["metadata.max.age.ms"] = INT_MAX if refresh_ms < 0 else refresh_ms
        for key, name in (
            ("socket.send.buffer.bytes", "send.buffer.bytes"),
            ("socket.receive.buffer.bytes", "receive.buffer.bytes"),
        ):
            if self[key]:
                found[name] = self[key]
        if self.role == PRODUCER:
            found.update(self._producer_properties())
        elif self.role == CONSUMER:
            found.update(self._consumer_properties())
        found.update(security_properties(self, invalid))
        rows = _ROWS[self.role]
        return {name: value for name, value in found.items() if name in rows and value is not None}

    def _addresses(self) -> str:
        addresses = [each.strip().rpartition("://")[2] for each in (self["metadata.broker.list"] or "").split(",")]
        with_ports = [_with_port(each) for each in addresses if each]
        if not with_ports:
            log.warning("No `bootstrap.servers` configured: client will not be able to connect to Kafka cluster")
            return "127.0.0.1:1"  # where nobody listens
        return ",".join(with_ports)

    def _producer_properties(self) -> dict[str, Any]:
        is_idempotent = self["enable.idempotence"] or self.is_set("transactional.id")
        acks, in_flight = self["request.required.acks"], self["max.in.flight.requests.per.connection"]
        if is_idempotent and self.is_set("request.required.acks") and acks != -1:
            raise invalid("Failed to create producer: `acks` must be set to `all` when `enable.idempotence` is true")
        if is_idempotent and in_flight > MOST_IN_FLIGHT_IN_ORDER:
            if self.is_set("max.in.flight.requests.per.connection"):
                raise invalid(
                    f"Failed to create producer: `max.in.flight` must be set <= {MOST_IN_FLIGHT_IN_ORDER} when "
                    "`enable.idempotence` is true"
                )
            in_flight = MOST_IN_FLIGHT_IN_ORDER
        if acks not in (-1, 0, 1):
            raise invalid(f'Configuration property "acks" cannot be honoured by kafkapy: {acks} is not 0, 1 or all')
        if self["partitioner"] not in PARTITIONERS:
            raise invalid(f'Invalid value for configuration property "partitioner": {self["partitioner"]}')
        linger_ms = int(float(self["queue.buffering.max.ms"]))
        delivery_ms = self["message.timeout.ms"] or INT_MAX
        request_ms = min(self["request.timeout.ms"], self["socket.timeout.ms"], max(delivery_ms - linger_ms, 1))
        codec = self["compression.codec"]
        found = {
            "acks": str(acks),
            "enable.idempotence": bool(is_idempotent),
            "max.in.flight.requests.per.connection": min(in_flight, _MOST_REQUESTS),
            "linger.ms": min(linger_ms, max(delivery_ms - request_ms, 0)),
            "delivery.timeout.ms": delivery_ms,
            "request.timeout.ms": request_ms,
            "compression.type": codec,
            "max.block.ms": max(min(self["topic.metadata.propagation.max.ms"], delivery_ms), 1),
            # Beyond the limit of the queue, so that `send` never waits for memory.
            "buffer.memory": self["queue.buffering.max.kbytes"] * 1024 + 2 * self["batch.size"] + (64 << 20),
        }
        if self["compression.level"] >= 0 and codec in _CODECS_WITH_LEVEL:
            found[f"compression.{codec}.level"] = max(self["compression.level"], 1)
        return found

    def _consumer_properties(self) -> dict[str, Any]:
        if self["max.poll.interval.ms"] < self["session.timeout.ms"]:
            raise invalid("Failed to create consumer: `max.poll.interval.ms`must be >= `session.timeout.ms`")
        found: dict[str, Any] = {
            "auto.offset.reset": _RESETS[self["auto.offset.reset"]],
            "enable.auto.commit": False,  # the consumer of this package commits the offsets that are stored
        }
        if self["group.protocol"].lower() == "consumer":
            found["partition.assignment.strategy"] = None
        return found


def _unknown(key: str) -> str:
    near = get_close_matches(key, [*KEYS, *_CALLBACKS, *_CALLBACKS_OF_ROLE, "logger"], n=1, cutoff=0.6)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    return f'No such configuration property: "{key}"{hint}'


def _with_port(address: str) -> str:
    host, colon, port = address.rpartition(":")
    is_complete = bool(colon) and is_number(port) and (":" not in host or host.startswith("["))
    return address if is_complete else f"{address}:9092"


def _typed(key: str, row: Number | Switch | Choice | Text, value: Any) -> Any:
    """Converts the value of a key to the type that `row`, the definition of the key, requires, and returns it.

    Raises KafkaException with librdkafka's texts for a value that the row does not accept.
    """
    if isinstance(row, Switch):
        text = str(value).lower()
        if text in ("true", "t", "1"):
            return True
        if text in ("false", "f", "0"):
            return False
        raise invalid(f'Expected bool value for "{key}": true or false')
    if isinstance(row, Number):
        return _number(key, row, value)
    if isinstance(row, Choice):
        text = str(value).lower()
        # An empty value is "none" here, as in Java's configuration.
        if key == "ssl.endpoint.identification.algorithm" and not text:
            return "none"
        for accepted in row.values:
            if text == accepted.lower():
                return accepted
        raise invalid(f'Invalid value "{value}" for configuration property "{key}"')
    if key == "queue.buffering.max.ms":
        return _linger(key, value)
    return str(value)


def _number(key: str, row: Number, value: Any) -> int:
    if key == "request.required.acks" and str(value).lower() == "all":
        return -1
    try:
        number = int(value) if not isinstance(value, str) else int(value.strip(), 0)
    except (TypeError, ValueError):
        raise invalid(f'Invalid value for configuration property "{key}"') from None
    if not row.lowest <= number <= row.highest:
        raise invalid(
            f'Configuration property "{key}" value {number} is outside allowed range {row.lowest}..{row.highest}\n'
        )
    return number


def _linger(key: str, value: Any) -> str:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise invalid(f'Invalid value for configuration property "{key}"') from None
    if not 0 <= number <= 900_000:
        raise invalid(f'Configuration property "{key}" value {value} is outside allowed range 0..900000\n')
    return repr(number)
