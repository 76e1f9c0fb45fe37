"""The requests and responses by which confluent-kafka's registry client associates subjects with resources.

A resource is, for example, a topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from kafkapy.compat.confluent_kafka.schema_registry._model import Fields, Schema


@dataclass(frozen=True, slots=True)
class Association(Fields):
    """The association of a subject with a resource."""

    subject: str | None
    guid: str | None
    resource_name: str | None
    resource_namespace: str | None
    resource_id: str | None
    resource_type: str | None
    association_type: str | None
    frozen: bool = False

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Returns the association that is described by a JSON object of the registry's API."""
        return super(Association, cls).from_dict({"frozen": False, **src_dict})


@dataclass(slots=True)
class AssociationInfo(Fields):
    """An association as a response describes it."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool = False
    schema: Schema | None = None

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Returns the association that is described by a JSON object of the registry's API."""
        return super(AssociationInfo, cls).from_dict({"frozen": False, **src_dict})


@dataclass(slots=True)
class AssociationCreateOrUpdateInfo(Fields):
    """An association to create, or the new state of an existing association."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: Schema | None = None
    normalize: bool | None = None


class _Resource(Fields):
    """A resource with its associations. `_info` is the class of the associations."""

    __slots__ = ()
    _info: ClassVar[type[Fields]]

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Returns the resource, with its associations, that is described by a JSON object of the registry's API."""
        found = super().from_dict({name: value for name, value in src_dict.items() if name != "associations"})
        listed = [cls._info.from_dict(each) for each in src_dict.get("associations") or ()]
        found.associations = listed or None  # type: ignore[attr-defined]
        return found


@dataclass(slots=True)
class AssociationCreateOrUpdateRequest(_Resource):
    """A request to create or to update the associations of a resource."""

    _info: ClassVar[type[Fields]] = AssociationCreateOrUpdateInfo
    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationCreateOrUpdateInfo] | None = None


@dataclass(slots=True)
class AssociationResponse(_Resource):
    """The associations of a resource after a request."""

    _info: ClassVar[type[Fields]] = AssociationInfo
    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationInfo] | None = None
