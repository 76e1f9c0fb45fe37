"""Metrics of the listener for ZooKeeper's clients."""

from __future__ import annotations

from kafkapy.metrics import table
from kafkapy.metrics.page import Page
from kafkapy.server.services import Services


def write_zookeeper(page: Page, services: Services) -> None:
    """Writes the metrics of the ZooKeeper tree, if this broker serves it."""
    server = None if services.zookeeper is None else services.zookeeper.server
    if server is None:
        return
    counts = server.counts()
    page.one(table.ZOOKEEPER_NODES, counts.nodes)
    page.one(table.ZOOKEEPER_EPHEMERALS, counts.ephemerals)
    page.one(table.ZOOKEEPER_SESSIONS, counts.sessions)
    page.one(table.ZOOKEEPER_CONNECTIONS, counts.connections)
    page.one(table.ZOOKEEPER_WATCHES, counts.watches)
    page.one(table.ZOOKEEPER_OUTSTANDING, counts.outstanding)
    page.one(table.ZOOKEEPER_RECEIVED, counts.received)
    page.one(table.ZOOKEEPER_SENT, counts.sent)
