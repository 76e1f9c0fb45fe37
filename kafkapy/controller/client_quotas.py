"""Client quotas in the metadata log (KIP-546): the records of a change, or the reason why it is refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import isnan

from kafkapy.controller.result import SUCCESS, ControllerResult, ErrorMessage
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage, QuotaEntity
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.metadata_records import ClientQuotaRecord

USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = frozenset({USER, CLIENT_ID, IP})
# The value of an integer quota may exceed an integer by this much.
FRACTION = 1e-6


class Largest(NamedTuple):
    """The largest value that an integer quota may have, and the integer type that sets this limit.

    `kind` is the name of the type with its article, such as "an INT", as Kafka's error message contains it.
    """

    value: float
    kind: str


LARGEST_LONG, LARGEST_INT = Largest(2.0**63, "a LONG"), Largest(2.0**31 - 1, "an INT")
# Key -> the largest value of an integer, or None for any number.
CLIENT_KEYS: dict[str, Largest | None] = {
    "producer_byte_rate": LARGEST_LONG,
    "consumer_byte_rate": LARGEST_LONG,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
IP_KEYS: dict[str, Largest | None] = {"connection_creation_rate": LARGEST_INT}


class QuotaAlteration(NamedTuple):
    """The change of the quotas of one entity.

    `entity` consists of sorted pairs (type, name); the name None means the default entity. `values` maps quota keys to
    values; None removes the quota. `has_duplicates` is True if the request has a key twice.
    """

    entity: QuotaEntity
    values: dict[str, float | None]
    has_duplicates: bool = False


def alter_client_quotas(
    image: MetadataImage,
    alterations: Sequence[QuotaAlteration],
    resolvable_hosts: Collection[str],
    *,
    validate_only: bool = False,
) -> ControllerResult[dict[QuotaEntity, ErrorMessage]]:
    """Changes quotas. The response has a result for each entity; an error of one does not affect the others.

    If an entity is repeated, its first change is made, and the result is nevertheless an error, as in Kafka.
    `resolvable_hosts` contains the names of ip entities that are IP addresses or can be resolved by DNS.
    """
    records: list[MessageAndVersion] = []
    response: dict[QuotaEntity, ErrorMessage] = {}
    for alteration in alterations:
        if alteration.has_duplicates or alteration.entity in response:
            text = f"Ignoring duplicate entity {_shown(alteration.entity)}"
            response[alteration.entity] = ErrorMessage(Error.INVALID_REQUEST, text)
            continue
        try:
            records += _alter(image, alteration, resolvable_hosts)
            response[alteration.entity] = SUCCESS
        except ApiError as error:
            response[alteration.entity] = ErrorMessage(error.error, error.message)
    return ControllerResult([] if validate_only else records, response)


def _alter(
    image: MetadataImage, alteration: QuotaAlteration, resolvable_hosts: Collection[str]
) -> list[MessageAndVersion]:
    keys = _allowed_keys(alteration.entity, resolvable_hosts)
    current = image.client_quotas.get(alteration.entity, {})
    records: list[MessageAndVersion] = []
    for key, value in alteration.values.items():
        if value is not None:
            _check_value(keys, key, value)
        if value == current.get(key):
            continue
        entity = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in alteration.entity]
        records.append(
            (ClientQuotaRecord(entity=entity, key=key, value=0.0 if value is None else value, remove=value is None), 0)
        )
    return records


def _allowed_keys(entity: QuotaEntity, resolvable_hosts: Collection[str]) -> dict[str, Largest | None]:
    if not entity:
        raise ApiError(Error.INVALID_REQUEST, "Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            raise ApiError(Error.INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise ApiError(Error.INVALID_REQUEST, f"Empty {kind} not supported")
    kinds = {kind for kind, _ in entity}
    if IP not in kinds:
        return CLIENT_KEYS
    if len(kinds) > 1:
        raise ApiError(
            Error.INVALID_REQUEST,
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        )
    name = entity[0][1]
    if name is not None and name not in resolvable_hosts:
        raise ApiError(Error.INVALID_REQUEST, f"{name} is not a valid IP or resolvable host.")
    return IP_KEYS


def _shown(entity: QuotaEntity) -> str:
    """Returns the entity as Kafka's messages write it: `ClientQuotaEntity(entries={user=alice})`."""
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _check_value(keys: dict[str, Largest | None], key: str, value: float) -> None:
    if key not in keys:
        raise ApiError(Error.INVALID_REQUEST, f"Invalid configuration key {key}")
    if value <= 0:
        raise ApiError(Error.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    largest = keys[key]
    if largest is None or isnan(value):  # NaN is accepted, as by Kafka, and limits nothing
        return
    if value > largest.value:
        raise ApiError(Error.INVALID_REQUEST, f"Proposed value for {key} is too large for {largest.kind}.")
    if value - int(value) > FRACTION:
        raise ApiError(Error.INVALID_REQUEST, f"{key} cannot be a fractional value.")
