"""The values of the registry: versions of subjects, compatibility levels, modes, qualified names of subjects."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from kafkapy.client.schema.model import Schema
from kafkapy.named_tuple import NamedTuple

DEFAULT_CONTEXT = "."
LATEST_NUMBER = -1  # as a version
LEVEL_FIELD = "compatibilityLevel"  # of settings


class Level(StrEnum):
    """The compatibility levels."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Returns whether a new schema is compared with every version, not only with the latest one."""
        return self.endswith("_TRANSITIVE")

    @property
    def is_backward(self) -> bool:
        """Returns whether readers with the new schema must be able to read data of old schemas."""
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def is_forward(self) -> bool:
        """Returns whether readers with an old schema must be able to read data of the new schema."""
        return self.startswith(("FORWARD", "FULL"))


class Mode(StrEnum):
    """The modes of the registry or of a subject."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"  # read-only for every subject, whatever the subject's own mode is
    IMPORT = "IMPORT"  # schemas are registered with given ids and versions


class Version(NamedTuple):
    """A version of a subject. `subject` is qualified by its context, unless that is the default one."""

    subject: str
    number: int
    id: int
    schema: Schema
    is_deleted: bool = False

    def as_json(self) -> dict[str, Any]:
        """Returns the version as the JSON object that the API's responses contain."""
        fields: dict[str, Any] = {"subject": self.subject, "version": self.number, "id": self.id}
        fields["guid"] = self.schema.guid
        fields.update(self.schema.as_json())
        if self.is_deleted:
            fields["deleted"] = True
        return fields


def context_of(subject: str) -> str:
    """Returns the context of a subject, such as `.staging` for `:.staging:orders`.

    A subject without a context is in the default context, `.`.
    """
    if subject.startswith(":."):
        context, separator, _ = subject[1:].partition(":")
        if separator:
            return context
    return DEFAULT_CONTEXT


def normalized_subject(subject: str) -> str:
    """Returns a subject without the name of the default context: `orders` for `:.:orders`."""
    return subject.removeprefix(":.:")


def qualified_subject(context: str | None, subject: str) -> str:
    """Returns the name of a subject in a context, such as `:.staging:orders`.

    The context is given with or without its leading dot; None is the default context. A subject that already has a
    context is returned unchanged.
    """
    subject = normalized_subject(subject)
    if not context or context == DEFAULT_CONTEXT or subject.startswith(":."):
        return subject
    dotted = context.strip(":")
    return f":{dotted if dotted.startswith('.') else '.' + dotted}:{subject}"
