"""Reliability patterns for applications of the client: retry topics, dead letters, delayed records, routing, tracing,
auditing.

All of them work with every broker that speaks the protocol. The decisions, such as the next topic of a record, are made
by functions and classes that use neither clocks nor sockets; the module `relay` consumes and produces in transactions.
docs/reliable.md describes the patterns.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkapy.client.reliable.audit import AuditReporter, ConsumerAudit, ProducerAudit
    from kafkapy.client.reliable.delay_service import DelayService
    from kafkapy.client.reliable.delayed_records import cancellation, delayed
    from kafkapy.client.reliable.file_tail import FileTail
    from kafkapy.client.reliable.isolated_handler import IsolatedHandler
    from kafkapy.client.reliable.mirror import Mirror
    from kafkapy.client.reliable.processor import Processor
    from kafkapy.client.reliable.records import Delivery, Failure, Output
    from kafkapy.client.reliable.redrive import Redrive
    from kafkapy.client.reliable.router import Router
    from kafkapy.client.reliable.routing import parse_rules
    from kafkapy.client.reliable.takeover import NameTaken
    from kafkapy.client.reliable.time_to_live import TimeToLive
    from kafkapy.client.reliable.trace import Tracer

__all__ = [
    "AuditReporter",
    "ConsumerAudit",
    "DelayService",
    "Delivery",
    "Failure",
    "FileTail",
    "IsolatedHandler",
    "Mirror",
    "NameTaken",
    "Output",
    "Processor",
    "ProducerAudit",
    "Redrive",
    "Router",
    "TimeToLive",
    "Tracer",
    "cancellation",
    "delayed",
    "parse_rules",
]

_NAMES: dict[str, tuple[str, ...]] = {
    "kafkapy.client.reliable.audit": ("AuditReporter", "ConsumerAudit", "ProducerAudit"),
    "kafkapy.client.reliable.delay_service": ("DelayService",),
    "kafkapy.client.reliable.delayed_records": ("cancellation", "delayed"),
    "kafkapy.client.reliable.file_tail": ("FileTail",),
    "kafkapy.client.reliable.isolated_handler": ("IsolatedHandler",),
    "kafkapy.client.reliable.mirror": ("Mirror",),
    "kafkapy.client.reliable.processor": ("Processor",),
    "kafkapy.client.reliable.records": ("Delivery", "Failure", "Output"),
    "kafkapy.client.reliable.redrive": ("Redrive",),
    "kafkapy.client.reliable.router": ("Router",),
    "kafkapy.client.reliable.routing": ("parse_rules",),
    "kafkapy.client.reliable.takeover": ("NameTaken",),
    "kafkapy.client.reliable.time_to_live": ("TimeToLive",),
    "kafkapy.client.reliable.trace": ("Tracer",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value
