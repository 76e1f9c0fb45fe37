"""The operations of the registry: what is registered, deleted and configured, and under which conditions.

Methods that write are called by one thread at a time, on the elected instance.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kafkapy.client.schema.model import JSON, Schema, SchemaReference
from kafkapy.registry import errors, record_format
from kafkapy.registry.errors import InvalidSchema, RegistryError
from kafkapy.registry.model import LATEST_NUMBER, LEVEL_FIELD, Level, Mode, Version, context_of
from kafkapy.registry.schemas.parsing import ParsedSchema, differences, parse
from kafkapy.registry.store import SchemaStore

Write = Callable[[list[tuple[bytes, bytes | None]]], None]
MOST_MESSAGES = 100


class RegistryService:
    """The operations of the registry on the schemas and settings in `store`.

    `write` appends records to the topic and waits until the store has applied them.
    """

    def __init__(self, store: SchemaStore, write: Write, default_level: Level = Level.BACKWARD) -> None:
        self.store = store
        self._write = write
        self._default_level = default_level

    # Settings

    def config(self, subject: str | None) -> dict[str, Any]:
        """Returns the settings that apply to a subject; None stands for the global settings.

        Each setting is taken from the first of these scopes that has it: the subject, its context, the global settings,
        the defaults.
        """
        found: dict[str, Any] = {LEVEL_FIELD: self._default_level.value}
        for each in self._scopes(subject):
            found.update({key: value for key, value in (self.store.config(each) or {}).items() if value is not None})
        return found

    def level(self, subject: str) -> Level:
        """Returns the compatibility level that applies to a subject."""
        return Level(self.config(subject)[LEVEL_FIELD])

    def set_config(self, subject: str | None, changes: dict[str, Any]) -> None:
        """Changes the settings of a subject, or the global ones if `subject` is None.

        Settings that `changes` does not name stay as they are. Raises RegistryError for an unknown compatibility level
        or a compatibilityGroup that is no text, or if the subject (or the registry) is in read-only mode.
        """
        self._check_writable(subject)
        if not isinstance(changes.get("compatibilityGroup"), str | None):
            raise errors.unprocessable("compatibilityGroup must be a string")
        settings = {**(self.store.config(subject) or {}), **changes}
        if "compatibility" in settings:
            settings[LEVEL_FIELD] = settings.pop("compatibility")
        level = settings.get(LEVEL_FIELD)
        if level is not None:
            if not isinstance(level, str) or level.upper() not in Level.__members__:
                raise errors.invalid_compatibility(level, (each.lower() for each in Level))
            settings[LEVEL_FIELD] = level.upper()
        self._put(record_format.CONFIG, subject, settings)

    def delete_config(self, subject: str | None) -> dict[str, Any]:
        """Deletes the settings of a subject, or the global ones if `subject` is None, and returns the deleted settings.

        Returns the default settings if no global ones were stored. Raises RegistryError if the subject has no settings
        of its own, or is read-only.
        """
        self._check_writable(subject)
        found = self.store.config(subject)
        if found is None and subject is not None:
            raise errors.subject_not_found(subject)
        self._put(record_format.CONFIG, subject, None)
        return found or self.config(None)

    def mode(self, subject: str | None) -> Mode:
        """Returns the mode that applies to a subject; None stands for the global mode.

        This is the mode of the subject or, if the subject has none, of its context, or else the global mode, which is
        READWRITE by default. A global READONLY_OVERRIDE applies to every subject.
        """
        if self.store.mode(None) == Mode.READONLY_OVERRIDE:
            return Mode.READONLY_OVERRIDE
        modes = [self.store.mode(each) for each in self._scopes(subject)]
        return Mode(next((each for each in reversed(modes) if each is not None), Mode.READWRITE))

    def set_mode(self, subject: str | None, mode: object, *, force: bool = False) -> Mode:
        """Sets the mode of a subject, or the global one if `subject` is None, and returns it.

        Raises RegistryError for an unknown mode. Unless `force`, raises it also for the mode IMPORT if the subject, or
        any subject if `subject` is None, has a version that is not deleted.
        """
        if not isinstance(mode, str) or mode.upper() not in Mode.__members__:
            raise errors.invalid_mode(mode, Mode)
        wanted = Mode(mode.upper())
        if wanted is Mode.IMPORT and not force:
            subjects = self.store.subjects() if subject is None else [subject]
            if any(self.store.versions(each) for each in subjects):
                raise errors.not_permitted("Cannot import since found existing subjects")
        self._put(record_format.MODE, subject, {"mode": wanted.value})
        return wanted

    def delete_mode(self, subject: str) -> str:
        """Deletes the mode of a subject and returns it. Raises RegistryError if the subject has no mode of its own."""
        found = self.store.mode(subject)
        if found is None:
            raise errors.subject_not_found(subject)
        self._put(record_format.MODE, subject, None)
        return found

    # Schemas

    def parse(self, schema: Schema, *, is_new: bool = False, normalize: bool = False) -> tuple[ParsedSchema, Schema]:
        """Returns the parsed schema, and the schema with its canonical text. Raises RegistryError if it is invalid.

        `is_new` adds the checks for schemas that are not registered yet; `normalize` sorts the keys of a JSON Schema.
        """
        try:
            parsed = parse(schema, self._resolve, is_new=is_new)
        except InvalidSchema as error:
            raise errors.invalid_schema(str(error)) from None
        text = parsed.canonical
        if normalize and schema.type == JSON:
            text = json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        return parsed, schema._replace(text=text)

    def register(
        self,
        subject: str,
        schema: Schema,
        *,
        schema_id: int | None = None,
        number: int | None = None,
        normalize: bool = False,
    ) -> Version:
        """Returns the version of a subject that has the schema. Registers the schema if the subject lacks it.

        `schema_id` and `number` are the id and the version number to register in the mode IMPORT, otherwise None; in
        other modes `number` may also be the number of the next version. `normalize` sorts the keys of a JSON Schema.
        Raises RegistryError for an invalid name or schema, for a schema that is not compatible, if the mode does not
        permit it, or if `schema_id` is the id of another schema.
        """
        check_subject(subject)
        parsed, schema = self.parse(schema, is_new=True, normalize=normalize)
        same = self._find(subject, schema)
        if same is not None and schema_id in (None, same.id):
            return same
        self._check_mode(subject, has_id=schema_id is not None)
        context = context_of(subject)
        if schema_id is None:
            messages = self._incompatibilities(parsed, schema, self.store.versions(subject), subject)
            if messages:
                raise errors.incompatible(subject, messages)
            schema_id = self.store.id_of(context, schema)
            if schema_id is None:
                schema_id = self.store.next_id(context)
            else:
                # All versions with one id have the same text, also if the comments of a .proto text differ.
                schema = self.store.with_id(context, schema_id)[0].schema
        else:
            self._check_import(context, schema_id, schema)
        every = self.store.versions(subject, deleted=True)
        following = every[-1].number + 1 if every else 1
        if number not in (None, following) and self.mode(subject) is not Mode.IMPORT:
            raise errors.invalid_schema("Version is not one more than previous version")
        version = Version(subject, number or following, schema_id, schema)
        key = record_format.encode_key(record_format.SCHEMA, subject, version.number)
        records = [(key, record_format.encode_version(version))]
        if any(each.number == version.number for each in every):
            records.append(record_format.encode_greatest_ids(self.store.greatest_ids()))
        self._write([*records])
        return version

    def look_up(self, subject: str, schema: Schema, *, deleted: bool = False, normalize: bool = False) -> Version:
        """Returns the version of a subject that has a schema. Raises RegistryError if there is none.

        Versions that were deleted softly are searched only if `deleted`. `normalize` sorts the keys of a JSON Schema.
        """
        if not self.store.versions(subject, deleted=deleted):
            raise errors.subject_not_found(subject)
        _, canonical = self.parse(schema, normalize=normalize)
        found = self._find(subject, canonical, deleted=deleted)
        if found is None:
            raise errors.schema_not_found()
        return found

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version:
        """Returns the version `number` of a subject; LATEST_NUMBER stands for the greatest number.

        Versions that were deleted softly are found only if `deleted`. Raises RegistryError if there is no such version.
        """
        found = self.store.version(subject, number, deleted=deleted)
        if found is None:
            if not self.store.versions(subject, deleted=deleted):
                raise errors.subject_not_found(subject)
            raise errors.version_not_found(number)
        return found

    def incompatibilities(self, subject: str, schema: Schema, number: int | None, *, normalize: bool) -> list[str]:
        """Returns why a schema is not compatible with a subject; empty if it is compatible.

        The schema is compared with the version `number` or, if `number` is None, with the versions that the
        subject's compatibility level requires. `normalize` sorts the keys of a JSON Schema. Raises RegistryError if the
        schema is invalid, or the version does not exist.
        """
        parsed, canonical = self.parse(schema, is_new=True, normalize=normalize)
        if number is None:
            return self._incompatibilities(parsed, canonical, self.store.versions(subject), subject)
        return self._incompatibilities(parsed, canonical, [self.version(subject, number)], subject)

    def delete_version(self, subject: str, number: int, *, permanent: bool) -> int:
        """Deletes a version of a subject and returns its number; LATEST_NUMBER stands for the greatest number.

        Without `permanent` the deletion is soft: the version is only marked as deleted, and must not be marked already.
        With `permanent` the version is removed, and must have been marked as deleted before. Raises RegistryError if
        one of these conditions is not met, if the version does not exist, if the subject is read-only, or if another
        schema refers to the version.
        """
        self._check_writable(subject)
        version = self.version(subject, number, deleted=True)
        if number == LATEST_NUMBER and not permanent:
            version = self.version(subject, number)
        self._check_referrers(version)
        key = record_format.encode_key(record_format.SCHEMA, subject, version.number)
        if permanent:
            if not version.is_deleted:
                raise errors.version_is_not_soft_deleted(subject, version.number)
            self._write([(key, None), record_format.encode_greatest_ids(self.store.greatest_ids())])
            return version.number
        if version.is_deleted:
            raise errors.version_is_soft_deleted(subject, version.number)
        records: list[tuple[bytes, bytes | None]] = [
            (key, record_format.encode_version(version._replace(is_deleted=True)))
        ]
        if len(self.store.versions(subject)) == 1:
            records += self._without_settings(subject)
        self._write(records)
        return version.number

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Deletes all versions of a subject and returns their numbers.

        Without `permanent` the deletion is soft: the versions are only marked as deleted, and must not all be marked
        already. With `permanent` the subject is removed, and all its versions must have been marked as deleted before.
        Raises RegistryError if one of these conditions is not met, if the subject does not exist or is read-only, or if
        another schema refers to one of its versions.
        """
        self._check_writable(subject)
        every, left = self.store.versions(subject, deleted=True), self.store.versions(subject)
        if not every:
            raise errors.subject_not_found(subject)
        if permanent and left:
            raise errors.subject_is_not_soft_deleted(subject)
        if not permanent and not left:
            raise errors.subject_is_soft_deleted(subject)
        deleted = every if permanent else left
        for version in deleted:
            self._check_referrers(version)
        records: list[tuple[bytes, bytes | None]]
        if permanent:
            records = [(record_format.encode_key(record_format.SCHEMA, subject, each.number), None) for each in deleted]
            records.append(record_format.encode_greatest_ids(self.store.greatest_ids()))
        else:
            value = record_format.encode_value({"subject": subject, "version": deleted[-1].number})
            records = [(record_format.encode_key(record_format.DELETE_SUBJECT, subject), value)]
        self._write(records + self._without_settings(subject))
        return [each.number for each in deleted]

    # Internal

    def _scopes(self, subject: str | None) -> list[str | None]:
        """Returns the scopes whose settings apply to a subject, the most general one first.

        None is the global scope; the others are the subject's context, unless it is the default one, and the subject.
        """
        if subject is None:
            return [None]
        context = context_of(subject)
        return [None, subject] if context == "." else [None, f":{context}:", subject]

    def _resolve(self, reference: SchemaReference) -> Schema | None:
        found = self.store.resolve(reference)
        return None if found is None else found.schema

    def _find(self, subject: str, schema: Schema, *, deleted: bool = False) -> Version | None:
        wanted = schema.identity_key
        matching = [each for each in self.store.versions(subject, deleted=deleted) if each.schema == schema]
        matching = matching or [
            each for each in self.store.versions(subject, deleted=deleted) if each.schema.identity_key == wanted
        ]
        return matching[-1] if matching else None

    def _incompatibilities(
        self, parsed: ParsedSchema, schema: Schema, versions: list[Version], subject: str
    ) -> list[str]:
        level = self.level(subject)
        group = self.config(subject).get("compatibilityGroup")
        if group is not None:
            versions = [each for each in versions if _property(each.schema, group) == _property(schema, group)]
        if level is Level.NONE or not versions:
            return []
        for version in versions[::-1] if level.is_transitive else versions[-1:]:
            try:
                old = parse(version.schema, self._resolve, is_new=False)
                found = differences(parsed, old) if level.is_backward else []
                found += differences(old, parsed) if level.is_forward else []
            except InvalidSchema as error:
                raise errors.invalid_schema(str(error)) from None
            if found:
                return [
                    *dict.fromkeys(each.text() for each in found[:MOST_MESSAGES]),
                    f"{{oldSchemaVersion: {version.number}}}",
                    f"{{oldSchema: '{version.schema.text}'}}",
                    f"{{compatibility: '{level.value}'}}",
                ]
        return []

    def _check_mode(self, subject: str, *, has_id: bool) -> None:
        mode = self.mode(subject)
        place = f"Subject {subject} in context {context_of(subject)}"
        if mode in (Mode.READONLY, Mode.READONLY_OVERRIDE):
            raise errors.not_permitted(f"{place} is in read-only mode")
        if has_id and mode is not Mode.IMPORT:
            raise errors.not_permitted(f"{place} is not in import mode")
        if not has_id and mode is Mode.IMPORT:
            raise errors.not_permitted(f"{place} is not in read-write mode")

    def _check_writable(self, subject: str | None) -> None:
        if self.mode(subject) in (Mode.READONLY, Mode.READONLY_OVERRIDE):
            place = "The registry" if subject is None else f"Subject {subject} in context {context_of(subject)}"
            raise errors.not_permitted(f"{place} is in read-only mode")

    def _check_import(self, context: str, schema_id: int, schema: Schema) -> None:
        others = self.store.with_id(context, schema_id)
        if any(each.schema.identity_key != schema.identity_key for each in others):
            raise errors.not_permitted(f"Overwrite new schema with id {schema_id} is not permitted.")

    def _check_referrers(self, version: Version) -> None:
        if any(True for _ in self.store.referrers(version.subject, version.number)):
            raise errors.is_referenced(version.subject, version.number)

    def _without_settings(self, subject: str) -> list[tuple[bytes, bytes | None]]:
        """Returns the tombstones, as pairs (key, None), that remove a subject's settings and mode from the topic.

        The list has no tombstone for settings or a mode that the subject does not have.
        """
        found: list[tuple[bytes, bytes | None]] = []
        if self.store.config(subject) is not None:
            found.append((record_format.encode_key(record_format.CONFIG, subject), None))
        if self.store.mode(subject) is not None:
            found.append((record_format.encode_key(record_format.MODE, subject), None))
        return found

    def _put(self, kind: str, subject: str | None, value: dict[str, Any] | None) -> None:
        content = None if value is None else record_format.encode_value(value)
        self._write([(record_format.encode_key(kind, subject), content)])


def _property(schema: Schema, name: str) -> Any:
    properties = (schema.metadata or {}).get("properties")
    return properties.get(name) if isinstance(properties, dict) else None


def check_subject(subject: str) -> None:
    """Raises RegistryError for a name that no subject may have: an empty name, one with control characters, and the
    reserved names __GLOBAL and __EMPTY."""
    name = subject.rpartition(":")[2] if subject.startswith(":.") else subject
    if not name or any(ord(each) < 32 or ord(each) == 127 for each in subject) or name in ("__GLOBAL", "__EMPTY"):
        raise errors.invalid_subject(subject)


__all__ = ["RegistryError", "RegistryService", "check_subject"]
