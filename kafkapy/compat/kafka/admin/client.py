"""KafkaAdminClient with the interface of kafka-python's, on the requests of kafkapy's admin client."""

from __future__ import annotations

from typing import Any

from kafkapy.client.closing import Closing
from kafkapy.compat.kafka.admin.acls import AclOperations
from kafkapy.compat.kafka.admin.configs import ConfigOperations
from kafkapy.compat.kafka.admin.groups import GroupOperations
from kafkapy.compat.kafka.admin.requests import AdminConnection
from kafkapy.compat.kafka.admin.transactions import TransactionOperations
from kafkapy.compat.kafka.admin.users import UserOperations
from kafkapy.compat.kafka.configuration import COMMON, VERSION, client_settings, options, unknown_options
from kafkapy.compat.kafka.connected import await_bootstrap, broker_version
from kafkapy.compat.kafka.errors import KafkaConfigurationError, translated


class KafkaAdminClient(
    GroupOperations, AclOperations, ConfigOperations, TransactionOperations, UserOperations, Closing
):
    """Administers a cluster. Thread-safe.

    The arguments are kafka-python's options. Raises KafkaConfigurationError for options that are unknown or cannot be
    honoured, and KafkaTimeoutError if no broker responds within `bootstrap_timeout_ms`. Every operation blocks, for
    `request_timeout_ms` at most unless it has a time-out of its own, and raises the exceptions of `errors`.
    """

    DEFAULT_CONFIG: dict[str, Any] = {**COMMON, "client_id": f"kafka-python-{VERSION}"}

    def __init__(self, **configs: Any) -> None:
        self._closed = True
        unknown = unknown_options(self.DEFAULT_CONFIG, configs)
        if unknown:
            raise KafkaConfigurationError(f"Unrecognized configs: {unknown}")
        self.config = options(self.DEFAULT_CONFIG, configs)
        settings = client_settings(self.config)
        settings.properties["default.api.timeout.ms"] = settings.properties["request.timeout.ms"]
        with translated():
            self._connection = AdminConnection(
                settings, in_flight_limit=self.config["max_in_flight_requests_per_connection"]
            )
        try:
            await_bootstrap(self._connection.network, self.config["bootstrap_timeout_ms"])
        except BaseException:
            self._connection.close()
            raise
        self.config["api_version"] = broker_version(self._connection.network, self.config["api_version"])
        self._closed = False

    def close(self) -> None:
        """Closes the connections. May be called again."""
        if not self._closed:
            self._closed = True
            self._connection.close()
