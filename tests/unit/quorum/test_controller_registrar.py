"""The registration of a controller with the active one: when it is sent, when it is repeated, and when that ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.metadata.cluster_image import ControllerRegistration, Endpoint
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.nodes.controller_channel import ControllerChannel
from kafkapy.nodes.node_channel import Destination
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.controller_registration import ControllerRegistrationResponse
from kafkapy.quorum.controller_registrar import ControllerRegistrar
from tests.harness.metadata import bootstrapped
from tests.harness.stub_node import StubNode

KEY = ApiKey.CONTROLLER_REGISTRATION
OWN = ControllerRegistration(
    3, bytes(range(16)), False, {"CONTROLLER": Endpoint("CONTROLLER", "host", 9093, 0)}, {"metadata.version": (7, 30)}
)


class Registrar:
    def __init__(self, node: StubNode) -> None:
        self.thread = NodeThread()
        channel = ControllerChannel(
            self.thread,
            lambda: Destination(1, "127.0.0.1", node.port),
            client_id="3",
            request_timeout_ms=10_000,
            retry_timeout_ms=10_000,
        )
        self.registrar = ControllerRegistrar(self.thread, channel, OWN)

    def publish(self, image: MetadataImage) -> None:
        self.registrar.on_metadata(MetadataDelta(image), image)


@pytest.fixture
def node() -> Iterator[StubNode]:
    with StubNode({KEY: lambda request, version: ControllerRegistrationResponse()}) as running:
        yield running


@pytest.fixture
def registrar(node: StubNode) -> Iterator[Registrar]:
    made = Registrar(node)
    yield made
    made.thread.stop()


def wait_for(node: StubNode, count: int) -> list[Any]:
    while len(node.of(KEY)) < count:
        threading.Event().wait(0.001)
    return node.of(KEY)


def test_a_controller_registers_its_listeners_and_features(node: StubNode, registrar: Registrar) -> None:
    registrar.registrar.take_over(bootstrapped())
    [request] = wait_for(node, 1)
    assert (request.controller_id, request.incarnation_id) == (3, OWN.incarnation_id)
    assert [(each.name, each.host, each.port) for each in request.listeners] == [("CONTROLLER", "host", 9093)]
    assert [(each.name, each.max_supported_version) for each in request.features] == [("metadata.version", 30)]


def test_nothing_is_sent_for_an_old_metadata_version_or_while_the_registration_is_known(
    node: StubNode, registrar: Registrar
) -> None:
    registered = bootstrapped()._replace(controllers={3: OWN})
    for image in (bootstrapped(14, elr=False), registered):
        registrar.publish(image)
    registrar.thread.stop()
    assert node.received == []


def test_a_former_incarnation_is_replaced(node: StubNode, registrar: Registrar) -> None:
    former = OWN._replace(incarnation_id=bytes(16))
    registrar.publish(bootstrapped()._replace(controllers={3: former}))
    assert wait_for(node, 1)[0].incarnation_id == OWN.incarnation_id


def test_a_refused_registration_is_repeated(node: StubNode, registrar: Registrar) -> None:
    node.answers[KEY] = lambda request, version: ControllerRegistrationResponse(
        error_code=Error.NONE if len(node.of(KEY)) > 2 else Error.UNKNOWN_SERVER_ERROR
    )
    registrar.publish(bootstrapped())
    assert len(wait_for(node, 3)) == 3
