"""The state of the registry in memory, which results from the records of the topic `_schemas` in their order.

One thread applies records. Other threads read: each method reads from dictionaries whose values are immutable.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sized
from typing import Any, TypeVar

from kafkapy.client.schema.model import Schema, SchemaReference
from kafkapy.registry import record_format
from kafkapy.registry.model import LATEST_NUMBER, LEVEL_FIELD, Level, Mode, Version, context_of
from kafkapy.registry.record_format import Record

log = logging.getLogger("kafkapy.registry")
K = TypeVar("K")
V = TypeVar("V")
Collected = TypeVar("Collected", bound=Sized)


class SchemaStore:
    """The content of the topic `_schemas` in memory: the versions of each subject, the schemas by id, and the settings.
    Only `apply` changes it.
    """

    def __init__(self) -> None:
        self._versions: dict[str, dict[int, Version]] = {}
        # (context, id) -> the versions with that id, by subject and number
        self._by_id: dict[tuple[str, int], dict[tuple[str, int], Version]] = {}
        # (context, digest of the content) -> the ids of schemas with this content; several only after an import
        self._ids: dict[tuple[str, str], frozenset[int]] = {}
        # GUID -> the versions with that schema, by subject and number
        self._by_guid: dict[str, dict[tuple[str, int], Version]] = {}
        # context -> the greatest id that any schema has ever had
        self._greatest_ids: dict[str, int] = {}
        # (subject, version) -> the versions that refer to it
        self._referrers: dict[tuple[str, int], frozenset[tuple[str, int]]] = {}
        self._configs: dict[str | None, dict[str, Any]] = {}
        self._modes: dict[str | None, str] = {}

    # Changes

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Applies a record of the topic. A record that cannot be understood is logged and has no effect."""
        try:
            record = record_format.decode(key, value)
            change = self._CHANGES.get(record.kind)
            if change is not None:
                change(self, record)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            log.warning("A record of the schemas' topic is ignored: %s; its key is %.200r", error, key)

    def _apply_schema(self, record: Record) -> None:
        if record.value is None:
            self._remove(record.subject or "", record.version)
            return
        version = record_format.decode_version(record.value)
        self._remove(version.subject, version.number)
        versions = dict(self._versions.get(version.subject, {}))
        versions[version.number] = version
        self._versions[version.subject] = dict(sorted(versions.items()))
        context = context_of(version.subject)
        identity, content = (version.subject, version.number), (context, version.schema.identity_key)
        self._by_id[context, version.id] = {**self._by_id.get((context, version.id), {}), identity: version}
        self._ids[content] = self._ids.get(content, frozenset()) | {version.id}
        guid = version.schema.guid
        self._by_guid[guid] = {**self._by_guid.get(guid, {}), identity: version}
        self._greatest_ids[context] = max(self._greatest_ids.get(context, 0), version.id)
        for each in version.schema.references:
            referrers = self._referrers.get((each.subject, each.version), frozenset())
            self._referrers[each.subject, each.version] = referrers | {identity}

    def _remove(self, subject: str, number: int) -> None:
        versions = self._versions.get(subject, {})
        version = versions.get(number)
        if version is None:
            return
        left = {each: found for each, found in versions.items() if each != number}
        if left:
            self._versions[subject] = left
        else:
            del self._versions[subject]
        context, identity = context_of(subject), (subject, number)
        _put(self._by_guid, version.schema.guid, _without(self._by_guid[version.schema.guid], identity))
        _put(self._by_id, (context, version.id), _without(self._by_id[context, version.id], identity))
        if (context, version.id) not in self._by_id:
            content = (context, version.schema.identity_key)
            _put(self._ids, content, self._ids[content] - {version.id})
        for each in version.schema.references:
            place = (each.subject, each.version)
            _put(self._referrers, place, self._referrers.get(place, frozenset()) - {identity})

    def _apply_delete_subject(self, record: Record) -> None:
        if record.value is None:
            return
        limit = int(record.value.get("version", 0))
        for version in list(self._versions.get(record.subject or "", {}).values()):
            if version.number <= limit and not version.is_deleted:
                self._replace(version._replace(is_deleted=True))

    def _apply_clear_subject(self, record: Record) -> None:
        if record.value is not None:
            for number in list(self._versions.get(record.subject or "", {})):
                self._remove(record.subject or "", number)

    def _replace(self, version: Version) -> None:
        identity, place = (version.subject, version.number), (context_of(version.subject), version.id)
        self._versions[version.subject] = {**self._versions[version.subject], version.number: version}
        self._by_id[place] = {**self._by_id[place], identity: version}
        self._by_guid[version.schema.guid] = {**self._by_guid[version.schema.guid], identity: version}

    def _apply_config(self, record: Record) -> None:
        if record.value is None:
            self._configs.pop(record.subject, None)
        else:
            level = record.value.get(LEVEL_FIELD)
            if level is not None:
                Level(level)  # raises ValueError for the level of another registry, which no request could be judged by
            self._configs[record.subject] = record.value

    def _apply_noop(self, record: Record) -> None:
        for context, greatest_id in record_format.decode_greatest_ids(record.value).items():
            self._greatest_ids[context] = max(self._greatest_ids.get(context, 0), greatest_id)

    def _apply_mode(self, record: Record) -> None:
        if record.value is None:
            self._modes.pop(record.subject, None)
        else:
            self._modes[record.subject] = Mode(str(record.value.get("mode"))).value

    _CHANGES = {
        record_format.SCHEMA: _apply_schema,
        record_format.DELETE_SUBJECT: _apply_delete_subject,
        record_format.CLEAR_SUBJECT: _apply_clear_subject,
        record_format.CONFIG: _apply_config,
        record_format.MODE: _apply_mode,
        record_format.NOOP: _apply_noop,
    }

    # Look-ups

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """Returns the names of the subjects that have a version which is not deleted, sorted; with `deleted`, the names
        of all subjects.
        """
        return sorted(
            subject
            for subject, versions in list(self._versions.items())
            if deleted or any(not each.is_deleted for each in versions.values())
        )

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Returns the versions of a subject in ascending order; with `deleted` also those that were deleted softly."""
        return [each for each in self._versions.get(subject, {}).values() if deleted or not each.is_deleted]

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version | None:
        """Returns the version `number` of a subject, None if it does not exist; LATEST_NUMBER stands for the greatest
        number.

        Versions that were deleted softly are found only if `deleted`.
        """
        if number == LATEST_NUMBER:
            found = self.versions(subject, deleted=deleted)
            return found[-1] if found else None
        version = self._versions.get(subject, {}).get(number)
        return None if version is None or (version.is_deleted and not deleted) else version

    def with_id(self, context: str, schema_id: int) -> list[Version]:
        """Returns all versions in a context whose schema has the id `schema_id`, deleted ones included."""
        return list(self._by_id.get((context, schema_id), {}).values())

    def with_id_in_any_context(self, schema_id: int) -> list[Version]:
        """Returns all versions in any context whose schema has the id `schema_id`, deleted ones included."""
        return [
            version for (_, each), found in list(self._by_id.items()) if each == schema_id for version in found.values()
        ]

    def id_of(self, context: str, schema: Schema) -> int | None:
        """Returns the id that a schema has in a context, the least one if there are several; None if it has none."""
        return min(self._ids.get((context, schema.identity_key), ()), default=None)

    def next_id(self, context: str) -> int:
        """Returns the id of the next new schema of a context."""
        return self._greatest_ids.get(context, 0) + 1

    def greatest_ids(self) -> dict[str, int]:
        """Returns the greatest id that a schema has ever had in each context, deleted schemas included."""
        return dict(self._greatest_ids)

    def with_guid(self, guid: str) -> Schema | None:
        """Returns the schema whose GUID is `guid`, or None if there is none."""
        versions = self._by_guid.get(guid.lower(), {})
        return next((version.schema for version in versions.values()), None)

    def contexts(self) -> list[str]:
        """Returns the contexts that have subjects, sorted; the default context is always among them."""
        return sorted({".", *(context_of(subject) for subject in list(self._versions))})

    def referrers(self, subject: str, number: int) -> Iterator[Version]:
        """Yields the versions that refer to the version `number` of a subject, without deleted ones."""
        for referrer in sorted(self._referrers.get((subject, number), set())):
            version = self.version(*referrer)
            if version is not None:
                yield version

    def resolve(self, reference: SchemaReference) -> Version | None:
        """Returns the version that a reference names, also if it was soft deleted; None if it does not exist."""
        return self.version(reference.subject, reference.version, deleted=True)

    def config(self, subject: str | None) -> dict[str, Any] | None:
        """Returns the settings that are stored for a subject (None: the global ones); None if none are stored."""
        return self._configs.get(subject)

    def mode(self, subject: str | None) -> str | None:
        """Returns the mode that is stored for a subject (None: the global mode); None if none is stored."""
        return self._modes.get(subject)


def _without(items: dict[K, V], removed: K) -> dict[K, V]:
    return {key: value for key, value in items.items() if key != removed}


def _put(index: dict[K, Collected], key: K, entries: Collected) -> None:
    """Sets the entries of `key` in `index`, or removes the key if `entries` is empty."""
    if entries:
        index[key] = entries
    else:
        index.pop(key, None)
