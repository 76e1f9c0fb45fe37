"""ApiVersions, versions 0 to 4 (KIP-35, KIP-511, KIP-584).

The response lists the APIs that are served on the client's listener, with their versions, and the supported and
finalized features. The telemetry APIs are always served, but listed only while the metrics listener is on. Apache
Kafka, too, does not list them if it has no telemetry receiver.

Version notes: from version 3 on the request names the client's software, which is checked. Below version 4 features
whose lowest level is 0 are left out. An unknown version gets a response of version 0 with UNSUPPORTED_VERSION.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafkapy.errors import Error
from kafkapy.metadata.features import KRAFT_VERSION, SUPPORTED_FEATURES
from kafkapy.protocol.api import FORWARDABLE, ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.server.api_registry import serves
from kafkapy.server.request_context import RequestContext

LOWEST, HIGHEST = 0, 4
FIRST_VERSION_WITH_SOFTWARE = 3
# Clients of versions up to 3 refuse a feature whose lowest level is 0, so such features are left out (KAFKA-17011).
FIRST_VERSION_WITH_LEVEL_0 = 4
# Announced only while the metrics page shows what clients push; Apache Kafka requires a receiver plugin for them.
TELEMETRY_APIS = frozenset([ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY])
SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions_error(
    request: ApiVersionsRequest | None, version: int, error: Error, message: str | None
) -> ApiVersionsResponse:
    """Returns the response for an error. If the error is UNSUPPORTED_VERSION, the response lists the versions of
    ApiVersions (KIP-511).
    """
    own = ApiVersionsResponse.ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=LOWEST, max_version=HIGHEST)
    return ApiVersionsResponse(error_code=error, api_keys=[own] if error is Error.UNSUPPORTED_VERSION else [])


@serves(ApiKey.API_VERSIONS, LOWEST, HIGHEST, on_error=api_versions_error)
def handle_api_versions(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    version = context.api_version
    if version >= FIRST_VERSION_WITH_SOFTWARE:
        names = (request.client_software_name, request.client_software_version)
        if not all(SOFTWARE.fullmatch(name) for name in names):
            return api_versions_error(request, version, Error.INVALID_REQUEST, None)
        context.session.client_software_name, context.session.client_software_version = names
    if context.session.authenticator is not None:
        context.session.authenticator.versions_sent()
    image = context.services.metadata.image
    is_telemetry_received = bool(context.services.config.kafkapy_metrics_listener)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=lowest, max_version=highest)
            for key, lowest, highest in _served_versions(context)
            if is_telemetry_received or key not in TELEMETRY_APIS
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in SUPPORTED_FEATURES.items()
            if lowest > 0 or version >= FIRST_VERSION_WITH_LEVEL_0
        ],
        finalized_features_epoch=image.offset - 1,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in [*image.features.items(), (KRAFT_VERSION, context.services.kraft_version())]
            if level > 0
        ],
    )


def _served_versions(context: RequestContext) -> Iterator[tuple[ApiKey, int, int]]:
    """Yields each served API with its lowest and highest version.

    Once the versions of the active controller are known, an API whose requests a broker forwards is announced only in
    versions that the active controller also serves.
    """
    services = context.services
    forwarding = None if context.session.is_controller else services.forwarding
    limits = {} if forwarding is None else forwarding.controller_versions
    for key, lowest, highest in services.registry(is_controller=context.session.is_controller).versions():
        if limits and key in FORWARDABLE:
            limit = limits.get(key)
            if limit is None:
                continue
            lowest, highest = max(lowest, limit[0]), min(highest, limit[1])
        if lowest <= highest:
            yield key, lowest, highest
