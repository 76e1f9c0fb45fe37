"""DescribeClientQuotas and AlterClientQuotas, versions 0 and 1 (KIP-546).

Quotas are checked and stored in the metadata, as in Apache Kafka; `server/quotas` enforces them.

Permissions: DescribeConfigs on the cluster to describe quotas, AlterConfigs on the cluster to change them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from kafkapy.controller.client_quotas import CLIENT_ID, ENTITY_TYPES, IP, USER, QuotaAlteration, alter_client_quotas
from kafkapy.controller.result import ErrorMessage
from kafkapy.errors import ApiError, Error
from kafkapy.host_names import host_addresses
from kafkapy.metadata.image import QuotaEntity
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from kafkapy.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext

MATCH_EXACT, MATCH_DEFAULT, MATCH_ANY = range(3)

# Entity type -> the requested name (None means the default entity), or _ANY.
Filter = dict[str, "str | object | None"]
_ANY = object()


# -- DescribeClientQuotas


def describe_client_quotas_error(
    request: DescribeClientQuotasRequest, version: int, error: Error, message: str | None
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None)


@serves(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, on_error=describe_client_quotas_error)
def handle_describe_client_quotas(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    check_cluster(context, Operation.DESCRIBE_CONFIGS)
    wanted = _filter(request)
    quotas = context.services.metadata.image.client_quotas
    return DescribeClientQuotasResponse(
        error_message="",
        entries=[
            DescribeClientQuotasResponse.EntryData(
                entity=[
                    DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                ],
                values=[DescribeClientQuotasResponse.ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in quotas.items()
            if _matches(entity, wanted, request.strict)
        ],
    )


def _filter(request: DescribeClientQuotasRequest) -> Filter:
    """Returns the filter in the request. Raises ApiError for a contradictory or unknown component."""
    wanted: Filter = {}
    for component in request.components:
        kind, name = component.entity_type, component.match
        if not kind:
            raise ApiError(Error.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in wanted:
            raise ApiError(Error.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise ApiError(Error.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type == MATCH_EXACT:
            if name is None:
                raise ApiError(
                    Error.INVALID_REQUEST, "Request specified MATCH_TYPE_EXACT, but set match string to null."
                )
            wanted[kind] = name
        elif component.match_type in (MATCH_DEFAULT, MATCH_ANY):
            if name is not None:
                how = "DEFAULT" if component.match_type == MATCH_DEFAULT else "SPECIFIED"
                raise ApiError(
                    Error.INVALID_REQUEST, f"Request specified MATCH_TYPE_{how}, but also specified a match string."
                )
            wanted[kind] = None if component.match_type == MATCH_DEFAULT else _ANY
        else:
            raise ApiError(Error.INVALID_REQUEST, f"Unknown match type {component.match_type}")
    if IP in wanted and (USER in wanted or CLIENT_ID in wanted):
        raise ApiError(
            Error.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component.",
        )
    return wanted


def _matches(entity: QuotaEntity, wanted: Filter, strict: bool) -> bool:
    names = dict(entity)
    if strict and len(names) != len(wanted):
        return False
    return all(kind in names and expected in (_ANY, names[kind]) for kind, expected in wanted.items())


# -- AlterClientQuotas


def alter_client_quotas_error(
    request: AlterClientQuotasRequest, version: int, error: Error, message: str | None
) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponse.EntryData(
                error_code=error,
                error_message=message,
                entity=[
                    AlterClientQuotasResponse.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
                    for part in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


@serves(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, on_error=alter_client_quotas_error, blocking=True)
def handle_alter_client_quotas(context: RequestContext, request: AlterClientQuotasRequest) -> None:
    """Alters quotas, on the handler pool: an entity of the type ip may be a host name, and looking it up may block."""
    check_cluster(context, Operation.ALTER_CONFIGS)
    version = context.api_version
    alterations = [
        QuotaAlteration(
            _entity(entry),
            {op.key: None if op.remove else op.value for op in entry.ops},
            has_duplicates=len({op.key for op in entry.ops}) < len(entry.ops),
        )
        for entry in request.entries
    ]
    hosts = {name for each in alterations for kind, name in each.entity if kind == IP and name}
    resolvable = {host for host in hosts if _is_resolvable(host)}
    answer_when_committed(
        context,
        lambda image: alter_client_quotas(image, alterations, resolvable, validate_only=request.validate_only),
        _altered,
        lambda error, message: alter_client_quotas_error(request, version, error, message),
    )


def _is_resolvable(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        try:
            host_addresses(host)
        except OSError:
            return False
    return True


def _entity(entry: AlterClientQuotasRequest.EntryData) -> QuotaEntity:
    """Returns the entity of an entry. If a type is repeated, its last name counts, as in Kafka."""
    return tuple(sorted({part.entity_type: part.entity_name for part in entry.entity}.items()))


def _altered(results: Mapping[QuotaEntity, ErrorMessage]) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponse.EntryData(
                error_code=result.error,
                error_message=result.message,
                entity=[
                    AlterClientQuotasResponse.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                ],
            )
            for entity, result in results.items()
        ]
    )
