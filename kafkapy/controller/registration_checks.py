"""The conditions under which the controller accepts a broker's registration, in Apache Kafka's order and wording."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.errors import ApiError, Error
from kafkapy.metadata import features as levels
from kafkapy.metadata.cluster_image import BrokerRegistration
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.topics_image import is_reserved_directory
from kafkapy.types import uuid_to_string

DISABLED = (0, 0)


def check_cluster_id(expected: str, received: str) -> None:
    """Raises ApiError(INCONSISTENT_CLUSTER_ID) if the cluster id `received` from a broker is not this cluster's,
    `expected`."""
    if received != expected:
        raise ApiError(Error.INCONSISTENT_CLUSTER_ID, f"Expected cluster ID {expected}, but got cluster ID {received}")


def check_registration(image: MetadataImage, registration: BrokerRegistration, kraft_version: int) -> None:
    """Raises ApiError(BROKER_ID_NOT_REGISTERED, INVALID_REGISTRATION, UNSUPPORTED_VERSION) for the first condition that
    the registration does not meet."""
    if registration.is_migrating_zk_broker:
        raise ApiError(Error.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers.")
    if levels.supports_directory_assignment(image.metadata_version):
        _check_directories(image, registration)
    _check_features(image, registration.features, kraft_version)


def _check_directories(image: MetadataImage, registration: BrokerRegistration) -> None:
    directories = registration.log_dirs
    if not directories:
        raise _invalid("No directories specified in request")
    if any(is_reserved_directory(each) for each in directories):
        raise _invalid("Reserved directory ID in request")
    if len(set(directories)) != len(directories):
        raise _invalid("Duplicate directory ID in request")
    for other in image.brokers.values():
        if other.broker_id == registration.broker_id:
            continue
        for directory in directories:
            if directory in other.log_dirs:
                raise _invalid(
                    f"Broker {other.broker_id} is already registered with directory {uuid_to_string(directory)}"
                )


def _check_features(image: MetadataImage, announced: Mapping[str, tuple[int, int]], kraft_version: int) -> None:
    """Raises ApiError(UNSUPPORTED_VERSION) unless the broker supports the finalized level of every feature.

    `announced` maps the name of each feature that the broker announces to its lowest and highest supported level.
    Raises ApiError(INVALID_REGISTRATION) if metadata.version is missing from it.
    """
    finalized = image.features | {
        levels.METADATA_VERSION: image.metadata_version,
        levels.KRAFT_VERSION: kraft_version,
    }
    for name, supported in announced.items():
        _check_range(name, supported, finalized.get(name, 0))
    if levels.METADATA_VERSION not in announced:
        raise _invalid(f"Request features do not contain '{levels.METADATA_VERSION}'")
    for name, level in finalized.items():
        if level != 0 and name not in announced:
            _check_range(name, DISABLED, level)


def _check_range(name: str, supported: tuple[int, int], level: int) -> None:
    lowest, highest = supported
    if not lowest <= level <= highest:
        raise ApiError(
            Error.UNSUPPORTED_VERSION,
            f"Unable to register because the broker does not support finalized version {level} of {name}. The broker "
            f"wants a version between {lowest} and {highest}, inclusive.",
        )


def _invalid(message: str) -> ApiError:
    return ApiError(Error.INVALID_REGISTRATION, message)
