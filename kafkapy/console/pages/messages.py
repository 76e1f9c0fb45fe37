"""The records of a topic: the page with its filters, the export, and the page of one record."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from kafkapy.console.decoders import CHOICES, LARGEST_CONTENT, Decoded, decode, preview
from kafkapy.console.figures import query, segment
from kafkapy.console.message_query import LIMITS, STARTS, MessageQuery, parse_query, ranges_of
from kafkapy.console.problem import Problem
from kafkapy.console.record_fate import fate_of
from kafkapy.console.record_filter import FIELDS, OPERATIONS, Filter, Record
from kafkapy.console.record_place import place_of
from kafkapy.console.record_search import Progress, RecordSearch, first_record
from kafkapy.console.rendering import render, render_block
from kafkapy.console.streaming import StreamedPage
from kafkapy.console.visit import Page, Visit
from kafkapy.types import TopicPartition

PREVIEW = 240
# Bytes of a URL with a record to write again; larger records have no such link.
LONGEST_QUERY = 16_000
_ROWS = "<!-- rows -->"
# Searches at a time, of all users together; each has a connection and a few megabytes.
MOST_SEARCHES = 8
_EXPORTS = {"json": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
# How often an export that waits for its turn looks whether the browser has left.
_LOOK_S = 0.1
_searches = threading.BoundedSemaphore(MOST_SEARCHES)


def show(visit: Visit) -> Response:
    """Returns the page of a topic's records, which sends each row to the browser as soon as the record is found."""
    name = visit.path["topic"]
    query = parse_query(visit)
    topic = visit.cluster.topic(name)
    numbers = [each.partition for each in topic.partitions]
    if query.partition is not None and query.partition not in numbers:
        raise Problem(404, f"The topic {name} has no partition {query.partition}.")
    search = _search(visit, query, name, numbers)
    values = {
        **visit.shared(),
        "tab": "topics",
        "part_name": "messages",
        "topic": topic,
        "reading": query,
        "numbers": numbers,
        "rows": _ROWS,
        **_choices(),
    }
    head, _, tail = render("messages", values).partition(_ROWS)
    return StreamedPage(_page(visit, query, search, values, (head, tail)), search.stop)


def _choices() -> dict[str, Any]:
    return {
        "starts": STARTS,
        "limits": LIMITS,
        "fields": FIELDS,
        "operations": OPERATIONS,
        "decoders": CHOICES,
        "empty_filter": Filter("value", "contains", ""),
    }


def _search(visit: Visit, query: MessageQuery, topic: str, numbers: list[int]) -> RecordSearch:
    visit.cluster.mask(topic).check(query.filters)
    wanted = numbers if query.partition is None else [query.partition]
    return RecordSearch(visit.cluster.properties, query, ranges_of(query, visit.cluster, topic, wanted))


def _page(
    visit: Visit, query: MessageQuery, search: RecordSearch, values: dict[str, Any], frame: tuple[str, str]
) -> Iterator[str]:
    """Yields the HTML of the page in pieces: the text before the rows, each row when found, the text after the rows.

    `frame` has the texts before and after the rows; `values` are the values for the template. If MOST_SEARCHES other
    searches are running, a refusal replaces the rows.
    """
    head, tail = frame
    yield head
    yield ""  # sends what there is
    if not _searches.acquire(blocking=False):
        yield render_block("messages", "refusal", {**values, "most": MOST_SEARCHES})
        yield tail
        return
    try:
        for found in search.run():
            if isinstance(found, Progress):
                yield render_block("messages", "progress", {**values, "progress": found})
                yield ""
            else:
                yield render_block("messages", "row", {**values, **_shown(visit, query, found)})
    finally:
        _searches.release()
    yield tail


def _shown(visit: Visit, query: MessageQuery, record: Record) -> dict[str, Any]:
    topic = visit.path["topic"]
    record = visit.cluster.mask(topic).apply(record)
    return {
        "record": record,
        "key": preview(record.key, topic, query.key_decoder, None, 80, visit.cluster.schemas),
        "content": preview(record.value, topic, query.value_decoder, record.key, PREVIEW, visit.cluster.schemas),
        "size": None if record.value is None else len(record.value),
    }


def export(visit: Visit) -> Response:
    """Returns a file, in JSON lines or CSV, with the records that the page would show for the same parameters."""
    kind = visit.choice("as", tuple(_EXPORTS), "json")
    name = visit.path["topic"]
    query = parse_query(visit)
    if query.start == "live":
        raise Problem(400, "A live page cannot be exported; choose another start.")
    numbers = [each.partition for each in visit.cluster.topic(name).partitions]
    search = _search(visit, query, name, numbers)
    write = _json_line if kind == "json" else _csv_line
    mask = visit.cluster.mask(name)

    if not _searches.acquire(blocking=False):
        raise Problem(503, f"The console runs {MOST_SEARCHES} searches already. Try again when one of them has ended.")
    _searches.release()  # the export acquires it again, when the browser is known to read

    def lines() -> Iterator[str]:
        while not _searches.acquire(timeout=_LOOK_S):
            if search.is_stopped:
                return
        try:
            yield from found_lines()
        finally:
            _searches.release()

    def found_lines() -> Iterator[str]:
        if kind == "csv":
            yield "partition,offset,timestamp,key,value\r\n"
        for found in search.run():
            # An empty text sends the lines that there are.
            yield write(mask.apply(found)) if isinstance(found, Record) else ""

    headers = {"content-disposition": f'attachment; filename="{segment(name)}.{kind}{"l" if kind == "json" else ""}"'}
    return StreamedPage(lines(), search.stop, content_type=_EXPORTS[kind], headers=headers)


def _json_line(record: Record) -> str:
    """Returns a record as one line of JSON.

    A key, value or header that is not UTF-8 is in base64, in a member whose name ends with `_base64`.
    """
    shown: dict[str, Any] = {"partition": record.partition, "offset": record.offset, "timestamp": record.timestamp}
    for name, content in (("key", record.key), ("value", record.value)):
        shown |= _member(name, content)
    shown["headers"] = [{"name": name, **_member("value", content)} for name, content in record.headers]
    return json.dumps(shown, ensure_ascii=False) + "\n"


def _member(name: str, content: bytes | None) -> dict[str, Any]:
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def _csv_line(record: Record) -> str:
    """Returns a record as a line of CSV (RFC 4180).

    An apostrophe is put before the text of a cell that a spreadsheet would interpret as a formula.
    """
    cells = [str(record.partition), str(record.offset), str(record.timestamp)]
    for content in (record.key, record.value):
        text = "" if content is None else content.decode("utf-8", "backslashreplace")
        cells.append("'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text)
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells) + "\r\n"


def show_record(visit: Visit) -> Page | Response:
    """Returns the page of one record, or the bytes of its key or value as a file."""
    name, number, offset = visit.path["topic"], int(visit.path["partition"]), int(visit.path["offset"])
    topic = visit.cluster.topic(name)
    partition = TopicPartition(name, number)
    if number not in [each.partition for each in topic.partitions]:
        raise Problem(404, f"The topic {name} has no partition {number}.")
    ends = visit.cluster.ends([partition])[partition]
    if ends.first is not None and ends.end is not None and not ends.first <= offset < ends.end:
        raise Problem(
            404, f"{partition} has the offsets from {ends.first} to {ends.end - 1}; offset {offset} is not one of them."
        )
    record = first_record(visit.cluster.properties, partition, offset)
    if record is None:
        raise Problem(
            404,
            f"{partition} has no record at offset {offset}: it was removed by compaction, or it is the marker of a "
            "transaction.",
        )
    mask = visit.cluster.mask(name)
    record = mask.apply(record)
    part = visit.text("download")
    if part:
        return _download(record, part, f"{name}-{number}-{offset}")
    key_decoder, value_decoder = (visit.choice(parameter, CHOICES, "auto") for parameter in ("kd", "vd"))
    return Page(
        "record",
        {
            "tab": "topics",
            "part_name": "messages",
            "topic": topic,
            "record": record,
            "partition": partition,
            "ends": ends,
            "key": _cut(decode(record.key, name, key_decoder, None, visit.cluster.schemas)),
            "content": _cut(decode(record.value, name, value_decoder, record.key, visit.cluster.schemas)),
            "headers": [(header, decode(content, name)) for header, content in record.headers],
            "key_decoder": key_decoder,
            "value_decoder": value_decoder,
            "decoders": CHOICES,
            "stored": place_of(visit.cluster, partition, offset),
            "fate": fate_of(visit.cluster, partition, record),
            "again": _again(name, record) if visit.settings.allow_changes and not mask else "",
        },
    )


def _again(topic: str, record: Record) -> str:
    """Returns the query of a URL. The URL opens the form that writes a record, and the query fills the form with the
    content of `record`.

    Returns "" if the query would be too long for a URL.
    """
    parts: dict[str, Any] = {"topic": topic}
    for name, content in (("key", record.key), ("value", record.value)):
        if content is None:
            parts[f"{name}_form"] = "null"
            continue
        try:
            parts[name] = content.decode()
        except UnicodeDecodeError:
            parts |= {name: base64.b64encode(content).decode(), f"{name}_form": "base64"}
    headers = [(name, (content or b"").decode("utf-8", "replace")) for name, content in record.headers]
    parts["headers"] = "\n".join(f"{name}={text}" for name, text in headers)
    found = query(**parts)
    return found if len(found) < LONGEST_QUERY else ""


def _cut(decoded: Decoded) -> Decoded:
    """Returns the content with its text cut after 262,144 characters, so that browsers show it quickly."""
    most = LARGEST_CONTENT // 4
    if len(decoded.text) <= most:
        return decoded
    return decoded._replace(text=decoded.text[:most] + "…", failure=decoded.failure or f"the first {most} characters")


def _download(record: Record, part: str, name: str) -> Response:
    if part not in ("key", "value"):
        raise Problem(400, f"download={part[:40]} is not one of key, value.")
    content = record.key if part == "key" else record.value
    if content is None:
        raise Problem(404, f"The {part} of this record is null.")
    headers = {"content-disposition": f'attachment; filename="{segment(name)}-{part}.bin"', "cache-control": "no-store"}
    return Response(content, media_type="application/octet-stream", headers=headers)
