"""The change that writes a record; its form may be filled with the content of an existing record."""

from __future__ import annotations

import base64

from kafkapy.client import Producer
from kafkapy.console.changes.change import Change, Field, Fields, Plan, key_values, required, whole_number
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.figures import segment, size
from kafkapy.console.problem import Problem

_FORMS = ("text", "base64", "null")


def _content(fields: Fields, name: str) -> bytes | None:
    form, text = fields.get(f"{name}_form", "text"), fields.get(name, "")
    if form == "null":
        return None
    if form == "base64":
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except ValueError:
            raise Problem(400, f"The {name} is not base64.") from None
    # A browser sends the lines of a form with CR and LF.
    return text.replace("\r\n", "\n").encode()


def _plan(view: ClusterView, fields: Fields) -> Plan:
    name = required(fields, "topic")
    partitions = len(view.topic(name).partitions)
    partition = whole_number(fields, "partition", 0, partitions - 1, -1)
    key, value = _content(fields, "key"), _content(fields, "value")
    headers = [(header, text.encode()) for header, text in key_values(fields.get("headers", "")).items()]

    def apply() -> str:
        settings = {**view.properties, "acks": "all", "delivery.timeout.ms": 15_000, "request.timeout.ms": 10_000}
        settings.pop("default.api.timeout.ms", None)
        with Producer(settings) as producer:
            future = producer.send(
                name, value, key=key, partition=None if partition < 0 else partition, headers=headers
            )
            producer.flush()
            written = future.result(15)
        return f"The record was written to {name}-{written.partition} at offset {written.offset}."

    rows = [
        ("partition", partition if partition >= 0 else "by the key"),
        ("key", "null" if key is None else size(len(key))),
        ("value", "null" if value is None else size(len(value))),
        ("headers", len(headers)),
    ]
    words = ["produce", name, (value or b"").decode("utf-8", "backslashreplace")[:200]]
    words += ["--key", key.decode("utf-8", "backslashreplace")[:200]] if key is not None else []
    words += [f"--header={header}={text.decode()}" for header, text in headers]
    return Plan(
        f"One record will be written to the topic {name}.",
        (tuple(words),),
        apply,
        f"/topics/{segment(name)}",
        ("Part", ""),
        rows,
    )


PRODUCE = Change(
    "produce",
    "Write a record",
    (
        Field("topic", "Topic", is_required=True, is_fixed=True),
        Field("partition", "Partition", "empty: chosen by the key"),
        Field("key", "Key", lines=2),
        Field("key_form", "Key is", choices=_FORMS),
        Field("value", "Value", lines=8),
        Field("value_form", "Value is", choices=_FORMS),
        Field("headers", "Headers", "name=value, one on each line", lines=3),
    ),
    _plan,
)
