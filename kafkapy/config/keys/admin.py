"""Configuration keys of admin clients."""

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
    client_key(
        "bootstrap.controllers", LIST, "", ANY, HIGH,
        "Addresses of controllers, for an admin client that connects to them instead of brokers.",
    ),
    client_key(
        "bootstrap.servers", LIST, "", ANY, HIGH,
        "Addresses (host:port) of the first connections to the cluster.",
    ),
    client_key(
        "client.id", STRING, "", ANY, MEDIUM,
        "Name of this client in its requests, for logs and quotas.",
    ),
    client_key(
        "connections.max.idle.ms", LONG, 300000, ANY, MEDIUM,
        "Time after which an idle connection is closed.",
    ),
    client_key(
        "default.api.timeout.ms", INT, 60000, at_least(0), MEDIUM,
        "Time-out of calls that have none of their own.",
    ),
    inert_client_key(
        "enable.metrics.push", BOOLEAN, False, ANY, LOW,
        "Push metrics to the broker if it requests them.",
    ),
    client_key(
        "receive.buffer.bytes", INT, 65536, at_least(-1), MEDIUM,
        "Size of the socket's receive buffer; -1 means the system's default.",
    ),
    client_key(
        "retries", INT, INT_MAX, between(0, INT_MAX), LOW,
        "Largest number of retries of a failed request.",
    ),
)
