"""The history of the metadata: the records before an offset or time, the image at this point (the state of the
metadata), and the difference between two images."""

from __future__ import annotations

from typing import Any

from kafkapy.client import Admin
from kafkapy.config.dynamic import dynamic_row
from kafkapy.console.audit_trail import author_of, changes_of, topic_names
from kafkapy.console.cluster_view import REACH_S, ClusterView
from kafkapy.console.message_query import time_of
from kafkapy.console.problem import Problem
from kafkapy.console.visit import Page, Visit
from kafkapy.metadata.history import MetadataHistory
from kafkapy.metadata.image import BROKER_RESOURCE, MetadataImage
from kafkapy.metadata.partition_history import describe_partition, explain_partition
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.message_json import message_json
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.metadata_log import fetch_history, read_directory
from kafkapy.tools.option import ToolError
from kafkapy.types import METADATA_TOPIC

RECORDS_OF_A_PAGE = 100
# Seconds for which a history may be shown after it was read.
HISTORY_S = 15.0
HIDDEN_VALUE = "(hidden)"
# The fields of a SCRAM credential with which an attacker could search for the password, or log in.
_KEYS_OF_CREDENTIAL = ("salt", "storedKey", "serverKey")


def history_of(view: ClusterView) -> MetadataHistory:
    """Returns the metadata history, which reads a log directory of this machine or the active controller's log. Blocks.

    Raises Problem if no directory is configured and no controller can be reached.
    """
    return view.cached("history", HISTORY_S, lambda: _fetch(view))


def _fetch(view: ClusterView) -> MetadataHistory:
    if view.metadata_directory is not None:
        return read_directory(view.metadata_directory)
    quorum = view.admin.describe_metadata_quorum()
    addresses = [f"{host}:{port}" for each in quorum.listeners.values() for host, port in [*each.values()][:1]]
    properties = {key: value for key, value in view.properties.items() if key != "bootstrap.servers"}
    properties["bootstrap.controllers"] = ",".join(addresses)
    try:
        if not addresses:
            raise ToolError("the brokers name no address of a controller")
        await_broker(properties, REACH_S)
    except ToolError as error:
        raise Problem(
            501,
            f"The metadata log cannot be read from here: {error}. On the controller's machine the console can read its "
            "files: start it with --metadata-directory LOG_DIRECTORY.",
        ) from None
    with Admin(properties) as admin:
        return fetch_history(admin)


def show(visit: Visit) -> Page:
    """Returns the page with the newest metadata records before an offset or time, and a summary of the image at this
    point."""
    history = history_of(visit.cluster)
    end = _offset(visit, history, "at", history.end_offset)
    image = history.image_at(end)
    wanted = visit.text("q").lower()
    changes = changes_of(visit.cluster, visit.settings.audit_topic)
    names = topic_names(history) if changes else {}
    found = []
    for record in reversed(history.between(0, end)):
        text = _summary(record)
        if wanted in text.lower():
            found.append((record, text, author_of(changes, record, names)))
            if len(found) == RECORDS_OF_A_PAGE:
                break
    return Page(
        "metadata",
        {
            "tab": "metadata",
            "history": history,
            "end": end,
            "at": visit.text("at"),
            "wanted": wanted,
            "records": found,
            "has_authors": any(author for _, _, author in found),
            "image": image,
            "topics": len(image.topics.by_name),
            "partitions": sum(len(each.partitions) for each in image.topics.by_name.values()),
            "topic_name": METADATA_TOPIC,
        },
    )


def _offset(visit: Visit, history: MetadataHistory, name: str, default: int) -> int:
    """Returns the offset in the parameter `name` of the URL, or the offset that belongs to the time in this parameter.

    Returns `default` if the parameter is missing or empty. A number above the end of the log is interpreted as a time.
    """
    text = visit.text(name)
    if not text:
        return default
    if text.isascii() and text.isdigit() and int(text) <= history.end_offset:
        return int(text)
    return history.offset_at(time_of(text))


def _summary(record: Any) -> str:
    """Returns a record on one line: its type and its fields, without the values of passwords and the keys of users."""
    if record.is_control:
        leader = getattr(record.message, "leader_id", None)
        return "control record of the quorum" if leader is None else f"controller {leader} became active"
    fields = message_json(record.message, type(record.message).HIGHEST_VERSION)
    kind = type(record.message).__name__.removesuffix("Record")
    if kind == "UserScramCredential":
        fields |= dict.fromkeys(_KEYS_OF_CREDENTIAL, HIDDEN_VALUE)
    elif kind == "Config":
        fields["value"] = _shown_value(fields["resourceType"], fields["name"], fields["value"])
    shown = ", ".join(f"{name}: {value}" for name, value in fields.items() if value not in (None, "", [], {}))
    return f"{kind} {shown}"[:600]


def _shown_value(resource_type: int, key: str, value: str | None) -> str | None:
    """Returns the value of a configuration key, or HIDDEN_VALUE instead of that of a password.

    A broker's key of unknown type may be a password, too: a broker's log hides the same values (RecordRedactor of
    Apache Kafka).
    """
    if value is None or resource_type != BROKER_RESOURCE:
        return value
    row = dynamic_row(key)
    return HIDDEN_VALUE if row is None or row.sensitive else value


def show_difference(visit: Visit) -> Page:
    """Returns the page with the differences between the metadata images at two offsets or times."""
    history = history_of(visit.cluster)
    start = _offset(visit, history, "from", history.base.offset)
    end = _offset(visit, history, "to", history.end_offset)
    if start > end:
        raise Problem(400, f"The first offset, {start}, is after the second, {end}.")
    before, after = _facts(history.image_at(start)), _facts(history.image_at(end))
    rows = [
        (name, *(facts[name].shown if name in facts else None for facts in (before, after)))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    return Page("difference", {"tab": "metadata", "start": start, "end": end, "rows": rows, "history": history})


class _Fact(NamedTuple):
    """A fact of an image: the text that the page shows, and the value by which two images are compared."""

    shown: str
    compared: str


def _facts(image: MetadataImage) -> dict[str, _Fact]:
    """Returns the partitions, brokers and configuration of an image by name."""
    found = {}
    for topic in image.topics.by_name.values():
        for number, state in topic.partitions.items():
            text = describe_partition(state)
            found[f"partition {topic.name}-{number}"] = _Fact(text, text)
    for broker in image.brokers.values():
        fenced = "fenced" if broker.fenced else "active"
        shutdown = ", in a controlled shutdown" if broker.in_controlled_shutdown else ""
        text = f"{fenced}{shutdown}, epoch {broker.epoch}"
        found[f"broker {broker.broker_id}"] = _Fact(text, text)
    for (kind, name), values in image.configs.items():
        for key, value in values.items():
            fact = _Fact(str(_shown_value(kind, key, value)), str(value))
            found[f"configuration {kind} {name or '(all)'} {key}"] = fact
    return found


def show_partition(visit: Visit) -> Page:
    """Returns the page with the history of one partition: its leaders and ISRs, and the reason of each change."""
    topic = visit.cluster.topic(visit.path["topic"])
    number = visit.whole("partition", 0, 0, 1 << 31)
    history = history_of(visit.cluster)
    events = list(explain_partition(history, topic.name, number))
    if not events:
        raise Problem(404, f"The metadata log has no event of partition {topic.name}-{number}.")
    numbers = [each.partition for each in topic.partitions]
    changes = changes_of(visit.cluster, visit.settings.audit_topic)
    names = topic_names(history) if changes else {}
    shown = [(each, author_of(changes, each.record, names)) for each in events[::-1][:500]]
    values = {"tab": "topics", "part_name": "history", "topic": topic, "number": number, "numbers": numbers}
    return Page("partition_history", {**values, "events": shown})
