"""The configuration keys of Apache Kafka 4.3's clients, by name."""

from __future__ import annotations

from itertools import chain

from kafkapy.config.keys import admin, client, client_security, consumer, producer
from kafkapy.config.row import Row

_EVERY_CLIENT = (*client.ROWS, *client_security.ROWS)

PRODUCER_ROWS: dict[str, Row] = {row.name: row for row in chain(_EVERY_CLIENT, producer.ROWS)}
CONSUMER_ROWS: dict[str, Row] = {row.name: row for row in chain(_EVERY_CLIENT, consumer.ROWS)}
ADMIN_ROWS: dict[str, Row] = {row.name: row for row in chain(_EVERY_CLIENT, admin.ROWS)}
