"""Configuration keys of clients: those of admin clients."""

from kafkapy.config.row import (
    BOOLEAN,
    HIGH,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    STRING,
    client_key,
    inert_client_key,
)
from kafkapy.config.validator import ANY, at_least, between

ROWS = (
    inert_client_key(
        "bootstrap.controllers", LIST, "", ANY, HIGH,
        "Addresses of controllers, for an admin client that speaks to them directly.",
    ),
    client_key(
        "bootstrap.servers", LIST, "", ANY, HIGH,
        "Addresses (host:port) that the cluster is first found by.",
    ),
    client_key(
        "client.id", STRING, "", ANY, MEDIUM,
        "Name that requests carry, for logs and quotas.",
    ),
    client_key(
        "connections.max.idle.ms", LONG, 300000, ANY, MEDIUM,
        "Time after which an idle connection is closed.",
    ),
    client_key(
        "default.api.timeout.ms", INT, 60000, at_least(0), MEDIUM,
        "Longest time that a call without a timeout of its own takes.",
    ),
    inert_client_key(
        "enable.metrics.push", BOOLEAN, False, ANY, LOW,
        "Send metrics to the broker if it asks for them.",
    ),
    client_key(
        "receive.buffer.bytes", INT, 65536, at_least(-1), MEDIUM,
        "Size of the socket's receive buffer; -1 is the system's own.",
    ),
    client_key(
        "retries", INT, INT_MAX, between(0, INT_MAX), LOW,
        "How often a failed request is sent again.",
    ),
)
