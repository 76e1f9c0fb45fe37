"""The API registry: declarations by decorator, lazy loading, and the check of the table against its modules."""

from __future__ import annotations

import pytest

from kafkapy.protocol.api import API_TABLE, ApiKey
from kafkapy.server.api_registry import BROKER, CONTROLLER, ApiRegistry, serves
from kafkapy.server.handlers import (
    CONTROLLER_HANDLER_MODULES,
    CONTROLLER_VERSIONS,
    HANDLER_MODULES,
    broker_versions,
)

SCRIPTED = "tests.unit.server.scripted_handlers"


def test_an_api_is_found_by_its_number_with_its_versions() -> None:
    registry = ApiRegistry({ApiKey.HEARTBEAT: SCRIPTED, ApiKey.FIND_COORDINATOR: SCRIPTED})
    served = registry.find(12)
    assert served is not None
    assert repr(served) == "ServedApi(HEARTBEAT, 0-3)"
    assert served.flexible_header_from == 4
    assert registry.find(0) is None
    assert [each.key for each in registry.served()] == [ApiKey.FIND_COORDINATOR, ApiKey.HEARTBEAT]


def test_the_table_and_the_decorators_must_agree() -> None:
    with pytest.raises(LookupError, match="FIND_COORDINATOR"):
        ApiRegistry({ApiKey.HEARTBEAT: SCRIPTED}).find(ApiKey.HEARTBEAT)
    with pytest.raises(LookupError, match="does not serve PRODUCE"):
        ApiRegistry({ApiKey.PRODUCE: SCRIPTED, ApiKey.HEARTBEAT: SCRIPTED, ApiKey.FIND_COORDINATOR: SCRIPTED}).find(
            ApiKey.PRODUCE
        )


def test_versions_that_the_protocol_does_not_have_cannot_be_served() -> None:
    with pytest.raises(ValueError, match="API_VERSIONS has versions 0 to 4, not 0 to 5"):
        serves(ApiKey.API_VERSIONS, 0, 5)(lambda context, request: None)


def test_every_module_of_the_table_loads_and_serves_what_it_says() -> None:
    brokers = {served.key for served in ApiRegistry(HANDLER_MODULES).served()}
    controllers = {served.key for served in ApiRegistry(CONTROLLER_HANDLER_MODULES, CONTROLLER).served()}
    assert brokers | controllers == set(HANDLER_MODULES)


@pytest.mark.parametrize(("kind", "modules"), [(BROKER, HANDLER_MODULES), (CONTROLLER, CONTROLLER_HANDLER_MODULES)])
def test_a_listener_serves_the_apis_that_kafka_serves_there_in_versions_that_kafka_has(
    kind: str, modules: dict[ApiKey, str]
) -> None:
    for served in ApiRegistry(modules, kind).served():
        api = API_TABLE[served.key]
        assert kind in api.listeners
        newest = api.served_by["4.3.0"]
        assert newest is not None
        assert served.highest == newest[1] - api.latest_version_unstable
        assert served.lowest <= newest[0]


@pytest.mark.parametrize(
    ("kind", "modules", "versions"),
    [
        (BROKER, HANDLER_MODULES, broker_versions(has_zookeeper=True)),
        (BROKER, HANDLER_MODULES, broker_versions(has_zookeeper=False)),
        (CONTROLLER, CONTROLLER_HANDLER_MODULES, CONTROLLER_VERSIONS),
    ],
)
def test_the_versions_are_known_before_the_handlers_are_loaded(
    kind: str, modules: dict[ApiKey, str], versions: dict[ApiKey, tuple[int, int]]
) -> None:
    registry = ApiRegistry(modules, kind, versions)
    known = registry.versions()
    assert known == [(served.key, served.lowest, served.highest) for served in registry.served()]
    assert registry.versions() == known


def test_versions_of_an_api_can_be_left_out() -> None:
    registry = ApiRegistry(
        {ApiKey.HEARTBEAT: SCRIPTED, ApiKey.FIND_COORDINATOR: SCRIPTED}, versions={ApiKey.HEARTBEAT: (1, 3)}
    )
    assert [repr(each) for each in registry.served()][1] == "ServedApi(HEARTBEAT, 1-3)"
    assert registry.versions()[1] == (ApiKey.HEARTBEAT, 1, 3)


def test_no_handler_is_loaded_for_the_versions() -> None:
    registry = ApiRegistry({ApiKey.HEARTBEAT: "no.such.module"}, versions={ApiKey.HEARTBEAT: (1, 2)})
    assert registry.versions() == [(ApiKey.HEARTBEAT, 1, 2)]


def test_an_api_of_the_other_kind_of_listener_is_not_found() -> None:
    assert ApiRegistry(HANDLER_MODULES).find(ApiKey.ENVELOPE) is None
    assert ApiRegistry(CONTROLLER_HANDLER_MODULES, CONTROLLER).find(ApiKey.PRODUCE) is None
    fetch = ApiRegistry(CONTROLLER_HANDLER_MODULES, CONTROLLER).find(ApiKey.FETCH)
    assert fetch is not None and fetch.handler.__module__.endswith("raft_fetch")
