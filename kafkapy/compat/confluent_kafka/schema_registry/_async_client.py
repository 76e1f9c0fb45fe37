"""confluent-kafka's asynchronous client of a schema registry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self

from kafkapy.compat.confluent_kafka._coroutines import coroutine_of
from kafkapy.compat.confluent_kafka.schema_registry._client import SchemaRegistryClient


class AsyncSchemaRegistryClient:
    """A SchemaRegistryClient whose methods are coroutines, which run on threads of the loop's executor."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._blocking = SchemaRegistryClient(conf)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._call(self._blocking.close)

    @property
    def blocking(self) -> SchemaRegistryClient:
        """The blocking client that sends the requests; this client and its blocking client have the same caches."""
        return self._blocking

    def config(self) -> dict[str, Any]:
        """Returns the configuration with which the client was made."""
        return self._blocking.config()

    @staticmethod
    def new_client(conf: Mapping[str, Any]) -> AsyncSchemaRegistryClient:
        """Returns a client with this configuration, as the constructor does."""
        return AsyncSchemaRegistryClient(conf)

    async def _call(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(call, *args, **kwargs)

    register_schema = coroutine_of(SchemaRegistryClient.register_schema)
    register_schema_full_response = coroutine_of(SchemaRegistryClient.register_schema_full_response)
    get_schema = coroutine_of(SchemaRegistryClient.get_schema)
    get_schema_by_guid = coroutine_of(SchemaRegistryClient.get_schema_by_guid)
    get_schema_types = coroutine_of(SchemaRegistryClient.get_schema_types)
    get_subjects_by_schema_id = coroutine_of(SchemaRegistryClient.get_subjects_by_schema_id)
    get_schema_versions = coroutine_of(SchemaRegistryClient.get_schema_versions)
    lookup_schema = coroutine_of(SchemaRegistryClient.lookup_schema)
    get_subjects = coroutine_of(SchemaRegistryClient.get_subjects)
    delete_subject = coroutine_of(SchemaRegistryClient.delete_subject)
    get_latest_version = coroutine_of(SchemaRegistryClient.get_latest_version)
    get_latest_with_metadata = coroutine_of(SchemaRegistryClient.get_latest_with_metadata)
    get_version = coroutine_of(SchemaRegistryClient.get_version)
    get_referenced_by = coroutine_of(SchemaRegistryClient.get_referenced_by)
    get_versions = coroutine_of(SchemaRegistryClient.get_versions)
    delete_version = coroutine_of(SchemaRegistryClient.delete_version)
    set_compatibility = coroutine_of(SchemaRegistryClient.set_compatibility)
    get_compatibility = coroutine_of(SchemaRegistryClient.get_compatibility)
    test_compatibility = coroutine_of(SchemaRegistryClient.test_compatibility)
    test_compatibility_all_versions = coroutine_of(SchemaRegistryClient.test_compatibility_all_versions)
    set_config = coroutine_of(SchemaRegistryClient.set_config)
    get_config = coroutine_of(SchemaRegistryClient.get_config)
    delete_config = coroutine_of(SchemaRegistryClient.delete_config)
    get_mode = coroutine_of(SchemaRegistryClient.get_mode)
    update_mode = coroutine_of(SchemaRegistryClient.update_mode)
    delete_mode = coroutine_of(SchemaRegistryClient.delete_mode)
    get_global_mode = coroutine_of(SchemaRegistryClient.get_global_mode)
    update_global_mode = coroutine_of(SchemaRegistryClient.update_global_mode)
    get_contexts = coroutine_of(SchemaRegistryClient.get_contexts)
    get_associations_by_resource_name = coroutine_of(SchemaRegistryClient.get_associations_by_resource_name)
    create_association = coroutine_of(SchemaRegistryClient.create_association)
    delete_associations = coroutine_of(SchemaRegistryClient.delete_associations)
    clear_latest_caches = coroutine_of(SchemaRegistryClient.clear_latest_caches)
    clear_caches = coroutine_of(SchemaRegistryClient.clear_caches)
