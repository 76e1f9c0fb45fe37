"""Construction of the listener for ZooKeeper's clients."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkapy.config import BrokerConfig
from kafkapy.config.listener import ZOOKEEPER_LISTENER_NAME
from kafkapy.config.listener_security import SASL_PROTOCOLS
from kafkapy.errors import ConfigError
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import TOPIC_RESOURCE, MetadataImage
from kafkapy.metadata.internal_topics import ZOOKEEPER_TREE_TOPIC
from kafkapy.server.broker_requests import BrokerRequests
from kafkapy.server.coordinator_log import ReplicatedCoordinatorLog
from kafkapy.server.internal_topics import create_internal_topic
from kafkapy.server.services import Services
from kafkapy.server.zookeeper_offsets import ZooKeeperOffsets, tree_leader
from kafkapy.server.zookeeper_requests import ControllerRequests
from kafkapy.zookeeper.server import MakeExchange
from kafkapy.zookeeper.service import ZooKeeperService
from kafkapy.zookeeper.view import ClusterFacts

if TYPE_CHECKING:
    from kafkapy.server.zookeeper_mirror import ZooKeeperMirror


def cluster_facts(services: Services) -> ClusterFacts:
    """Returns what Kafka's znodes show in addition to the metadata image: cluster id, active controller and time."""
    controller_id = services.active_controller_id()
    if controller_id not in services.metadata.image.brokers:
        controller_id = services.node_id  # the active controller is no broker
    return ClusterFacts(services.cluster_id, controller_id, services.clock.wall_ms())


def build_zookeeper(services: Services) -> ZooKeeperService:
    """Constructs the service that shows Kafka's znodes to ZooKeeper's clients, and binds its listener.

    Raises OSError if the port cannot be bound, and ConfigError if the listener uses SASL and no user is configured.
    """
    config, tls = services.config, services.tls_listeners
    return ZooKeeperService(
        config,
        reactor=services.reactor,
        log=ReplicatedCoordinatorLog(services.replica_manager, config.offsets_commit_timeout_ms),
        clock=services.clock,
        image=lambda: services.metadata.image,
        create_topic=lambda: create_internal_topic(services, ZOOKEEPER_TREE_TOPIC),
        facts=lambda: cluster_facts(services),
        requests=ControllerRequests(services),
        tls=None if tls is None else tls.of(ZOOKEEPER_LISTENER_NAME),
        make_sasl_exchange=_make_sasl_exchange(config),
    )


def _make_sasl_exchange(config: BrokerConfig) -> MakeExchange | None:
    """Returns the function that creates the server's part of a SASL exchange; None if the listener does not use SASL.

    Raises ConfigError if the listener uses SASL and no user is configured.
    """
    if config.zookeeper_listener_security_protocol not in SASL_PROTOCOLS:
        return None
    from kafkapy.server.zookeeper_sasl import make_digest_md5

    return make_digest_md5(config)


def build_zookeeper_offsets(
    services: Services, service: ZooKeeperService, make_requests: Callable[[], BrokerRequests]
) -> ZooKeeperOffsets:
    """Constructs the access to group offsets in znodes, which OffsetCommit and OffsetFetch version 0 use.

    `make_requests` constructs an object that sends requests to other brokers.
    """
    return ZooKeeperOffsets(
        lambda: service.consumer_offsets,
        lambda: tree_leader(services.metadata.image, services.node_id),
        make_requests,
    )


class ViewFollower:
    """Notifies the ZooKeeper service, on the reactor's thread, of new images and the names of the changed topics.

    Several images that are published before the reactor runs the notification are covered by this one notification.
    """

    def __init__(self, services: Services, service: ZooKeeperService) -> None:
        self._post = services.reactor.post
        self._service = service
        self._lock = threading.Lock()
        self._topics: set[str] | None = None  # changed topics; None if no call is posted

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Receives a new image on the quorum thread, and posts a notification of the service to the reactor's thread.

        Does not post another notification if an earlier one has not run yet, because that one covers this image too.
        """
        names = {topic.name for topic in (*delta.changed_topics.values(), *delta.deleted_topics.values())}
        names |= {name for resource_type, name in delta.changed_configs if resource_type == TOPIC_RESOURCE}
        with self._lock:
            is_posted = self._topics is not None
            self._topics = names if self._topics is None else self._topics | names
        if not is_posted:
            self._post(self._show)

    def _show(self) -> None:
        with self._lock:
            topics, self._topics = self._topics or set(), None
        self._service.on_image(topics)


def build_mirror(services: Services) -> ZooKeeperMirror:
    """Constructs the object that writes Kafka's znodes to the ZooKeeper of zookeeper.mirror.connect.

    Raises ConfigError if the library kazoo is not installed or the address is malformed.
    """
    connect = services.config.zookeeper_mirror_connect
    try:
        from kafkapy.server.zookeeper_mirror import ZooKeeperMirror  # only with the key
    except ImportError as error:
        what = "zookeeper.mirror.connect needs a library: pip install 'kafkapy[zookeeper]'"
        raise ConfigError(f"{what} ({error})") from None
    try:
        return ZooKeeperMirror(
            connect, services.node_id, lambda: services.metadata.image, lambda: cluster_facts(services)
        )
    except ValueError as error:
        raise ConfigError(f"zookeeper.mirror.connect={connect}: {error}") from None


def start_mirror(services: Services, mirror: ZooKeeperMirror) -> None:
    """Makes the quorum notify the mirror of each new image, and starts the mirror."""
    services.quorum.follow(mirror)
    mirror.start()


def start_zookeeper(services: Services, service: ZooKeeperService) -> None:
    """Makes the quorum notify the service of each new image, and starts the service.

    The service creates the topic that stores its znodes.
    """
    following = services.quorum.follow(ViewFollower(services, service))
    # The tree may have been loaded before, and would miss what has changed in between.
    following.add_done_callback(lambda done: services.reactor.post(service.on_image))
    service.start()
