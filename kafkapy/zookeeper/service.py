"""Loads the tree of znodes when this broker becomes the leader of the partition that stores it, and serves it then."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable

from kafkapy._core.reactor.reactor import Reactor
from kafkapy.config.broker_config import BrokerConfig
from kafkapy.coordinator.coordinator_log import CoordinatorLog
from kafkapy.coordinator.runtime import CoordinatorRuntime
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.internal_topics import ZOOKEEPER_TREE_TOPIC
from kafkapy.purgatory.delayed_operation import TimerEntry
from kafkapy.replica.partition import Partition
from kafkapy.types import Clock
from kafkapy.zookeeper.commands import ClusterRequests, Commands
from kafkapy.zookeeper.consumer_offsets import ConsumerOffsets
from kafkapy.zookeeper.listener import Listener, TlsSource
from kafkapy.zookeeper.server import MakeExchange, ZooKeeperServer
from kafkapy.zookeeper.settings import ZooKeeperSettings
from kafkapy.zookeeper.shard import ZooKeeperShard
from kafkapy.zookeeper.view import ClusterFacts
from kafkapy.zookeeper.view_writer import ViewWriter

logger = logging.getLogger("kafkapy.zookeeper.Service")

_LOAD_BUFFER_BYTES = 5 * 1024 * 1024
_CREATE_TOPIC_INTERVAL_MS = 1000
# The pause before the view is written again after a refusal, which ends all connections; it doubles each time.
_VIEW_RETRY_MS = 2000
_LONGEST_VIEW_RETRY_MS = 60_000
_MOST_DOUBLINGS = 10


class ZooKeeperService:
    """Serves a tree of znodes to ZooKeeper's clients while this broker leads the internal topic that stores the tree.

    `create_topic` asks the controller to create the internal topic, without waiting. `facts` returns what the tree
    shows of the cluster in addition to the metadata image. `requests` sends the controller the requests that old tools
    make by writing znodes. Only the reactor's thread may use it.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        reactor: Reactor,
        log: CoordinatorLog,
        clock: Clock,
        image: Callable[[], MetadataImage],
        create_topic: Callable[[], None],
        facts: Callable[[], ClusterFacts],
        requests: ClusterRequests,
        tls: TlsSource | None,
        make_sasl_exchange: MakeExchange | None,
    ) -> None:
        """Binds the address of `zookeeper.listener`, whose clients use TLS if `tls` is set.

        Clients may authenticate by SASL if `make_sasl_exchange` is set. Raises OSError if the address cannot be bound.
        """
        self.settings = ZooKeeperSettings.from_config(config)
        self.server: ZooKeeperServer | None = None
        self._listener = Listener(config.zookeeper_listener, reactor, self.settings, tls)
        self._schedule = reactor.schedule
        self._clock = clock
        self._image = image
        self._create_topic = create_topic
        self._facts = facts
        self._requests = requests
        self._make_sasl_exchange = make_sasl_exchange
        self._view: ViewWriter | None = None
        self._timer: TimerEntry | None = None
        self._view_timer: TimerEntry | None = None
        self._runtime: CoordinatorRuntime[ZooKeeperShard] = CoordinatorRuntime(
            ZOOKEEPER_TREE_TOPIC,
            log=log,
            make_shard=lambda context: ZooKeeperShard(context, self._tree_loaded, self._tree_lost),
            schedule=reactor.schedule,
            clock=clock,
            load_buffer_bytes=_LOAD_BUFFER_BYTES,
        )

    @property
    def port(self) -> int:
        return self._listener.port

    @property
    def consumer_offsets(self) -> ConsumerOffsets | None:
        """The access to groups' offsets in the tree; None while this broker does not serve the tree."""
        return None if self.server is None else ConsumerOffsets(self.server, self.settings.view_chroot)

    def start(self) -> None:
        """Asks the controller to create the internal topic if it does not exist; repeats this until the
        topic exists."""
        if ZOOKEEPER_TREE_TOPIC in self._image().topics.by_name:
            self._timer = None
            return
        self._create_topic()
        self._timer = self._schedule(_CREATE_TOPIC_INTERVAL_MS, self.start)

    def on_image(self, topics: Collection[str] | None = None) -> None:
        """Updates the tree to the newest metadata image, if this broker serves the tree.

        `topics` has the topics that have changed since the last call; None if that is not known.
        """
        if self._view is not None and self.server is not None and self.server.commands is not None:
            image = self._image()
            self._view.follow(image, self._facts(), topics)
            self.server.commands.follow(image)

    def on_leadership(self, led: Iterable[Partition], followed: Iterable[Partition]) -> None:
        """Loads the tree if its partition is in `led`, and stops serving it if its partition is in `followed`.

        `led` has the partitions that this broker leads now, and `followed` the partitions that it no longer leads.
        """
        self._runtime.on_leadership(led, followed)

    def shutdown(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._cancel_view_timer()
        self._runtime.shutdown()
        self._listener.close()

    def _tree_loaded(self, shard: ZooKeeperShard) -> None:
        logger.info("Serving the tree of %d nodes from zxid 0x%x on", len(shard.tree.nodes), shard.tree.zxid)
        server = ZooKeeperServer(
            shard, self._runtime, self.settings, self._schedule, self._clock, self._make_sasl_exchange
        )
        chroot = self.settings.view_chroot
        commands = Commands(
            shard.tree, chroot, self._requests, self._image, server.delete_all, self._restore,
            is_writable=self.settings.is_view_writable, has_acls=self.settings.has_acls,
        )  # fmt: skip
        server.commands = commands
        self._view = ViewWriter(
            shard.tree, chroot, server.begin, server.commit, commands.is_requested, self._view_refused
        )
        self.server = server
        self.on_image()
        commands.resume()
        self._listener.serve(server)

    def _restore(self, path: str) -> None:
        if self._view is not None:
            self._view.restore(path)

    def _view_refused(self) -> None:
        """Writes the view again after a while, because the log has refused changes of it."""
        if self._view_timer is None and self._view is not None and self.server is not None:
            pause_ms = min(_VIEW_RETRY_MS << min(self._view.refusals - 1, _MOST_DOUBLINGS), _LONGEST_VIEW_RETRY_MS)
            self._view_timer = self._schedule(pause_ms, self._write_view_again)

    def _write_view_again(self) -> None:
        self._view_timer = None
        self.on_image()

    def _cancel_view_timer(self) -> None:
        if self._view_timer is not None:
            self._view_timer.cancel()
            self._view_timer = None

    def _tree_lost(self) -> None:
        self._cancel_view_timer()
        if self.server is not None:
            self._listener.refuse()
            self.server.stop("this broker no longer leads the tree")
            self.server = None
            self._view = None
