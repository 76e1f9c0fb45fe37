"""Checks of the listeners: free ports, connections to a running broker, resolution of advertised names."""

from __future__ import annotations

import errno
import socket

from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.host_names import host_addresses
from kafkapy.tools.diagnosis.finding import GOOD, NOTE, PROBLEM, WARNING, Finding, Findings

SUBJECT = "ports"
CONNECT_TIMEOUT_S = 1.0


def check_ports(config: BrokerConfig, *, is_running: bool) -> Findings:
    """Yields findings on the ports of listeners and on the names of advertised listeners.

    If `is_running` is True, a broker runs on the log directories and must accept connections; otherwise the ports must
    be free.
    """
    for listener in config.broker_listeners:
        yield from _port(listener, is_running)
    for listener in config.declared_advertised_listeners:
        host = listener.host or socket.getfqdn()
        try:
            host_addresses(host, listener.port)
        except OSError:
            text = f"clients connect to {host}, a name that cannot be resolved on this machine"
            yield Finding(WARNING, SUBJECT, text, "set advertised.listeners to a name that clients can resolve")


def _port(listener: Listener, is_running: bool) -> Findings:
    if is_running:
        if _accepts_connections(listener):
            yield Finding(GOOD, SUBJECT, f"the running broker accepts connections on {listener}")
        else:
            yield Finding(
                WARNING, SUBJECT, f"a broker runs on the log directories, but {listener} accepts no connections"
            )
        return
    try:
        addresses = host_addresses(listener.host or None, listener.port, socket.AI_PASSIVE)
    except OSError:
        yield Finding(PROBLEM, SUBJECT, f"the name of {listener} cannot be resolved")
        return
    family, kind, protocol, _, address = addresses[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                advice = f"find the program that listens: ss -ltnp 'sport = :{listener.port}'"
                yield Finding(PROBLEM, SUBJECT, f"another program uses the port of {listener}", advice)
            else:
                yield Finding(PROBLEM, SUBJECT, f"{listener} cannot be bound: {error.strerror}")
            return
    yield Finding(GOOD if listener.port else NOTE, SUBJECT, f"{listener} is free")


def _accepts_connections(listener: Listener) -> bool:
    try:
        socket.create_connection((listener.host or "localhost", listener.port), CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True
