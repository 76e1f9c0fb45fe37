"""Levels of features as kafka-features and kafka-storage take and print them."""

from __future__ import annotations

from kafkapy.metadata.features import LATEST_METADATA_VERSION, METADATA_VERSION
from kafkapy.metadata.release_features import (
    DEPENDENCIES,
    METADATA_VERSION_NAMES,
    first_levels,
    metadata_version_named,
)
from kafkapy.tools.declaration import Command
from kafkapy.tools.option import Option, ToolError

_LARGEST = 2**15 - 1
OLDEST_NAME, LATEST_NAME = (
    METADATA_VERSION_NAMES[each] for each in (min(METADATA_VERSION_NAMES), LATEST_METADATA_VERSION)
)


def look_up_commands(
    release_aliases: tuple[str, ...] = (), feature_aliases: tuple[str, ...] = ()
) -> tuple[Command, ...]:
    """`version-mapping` and `feature-dependencies`, which both tools have; with the short flags of one."""
    feature = "A feature and its level: metadata.version=30. May come again."
    return (
        Command(
            "version-mapping", "Look up the features that a release begins with.", (release_option(release_aliases),)
        ),
        Command(
            "feature-dependencies",
            "Look up which features a level of a feature needs.",
            (Option("feature", feature, "FEATURE", aliases=feature_aliases, is_required=True),),
        ),
    )


def release_option(aliases: tuple[str, ...] = ()) -> Option:
    """A release, for what it begins with; the newest if it is left out."""
    text = f"The release, from {OLDEST_NAME} to {LATEST_NAME}, which it is without this."
    return Option("release-version", text, "RELEASE_VERSION", aliases=aliases)


def name_and_level(text: str) -> tuple[str, int]:
    """`group.version=1`.  ToolError in Kafka's words."""
    name, equals, level = text.partition("=")
    if not equals:
        raise ToolError(f"Can't parse feature=level string {text}: equals sign not found.")
    digits = level.strip()
    if not (digits.isascii() and digits.isdigit() and int(digits) <= _LARGEST):
        raise ToolError(f"Can't parse feature=level string {text}: unable to parse {digits} as a short.")
    return name.strip(), int(digits)


def level_of_release(name: str) -> int:
    """The metadata.version of `4.0` or `4.0-IV3`.  ToolError in Kafka's words."""
    try:
        return metadata_version_named(name)
    except ValueError as error:
        raise ToolError(str(error)) from None


def print_version_mapping(release: str | None) -> None:
    """The features that a release begins with; None: the newest."""
    level = level_of_release(release) if release is not None else LATEST_METADATA_VERSION
    print(f"metadata.version={level} ({release or METADATA_VERSION_NAMES[level]})")
    for feature, first in first_levels(level).items():
        print(f"{feature}={first}")


def print_dependencies(name: str, level: int) -> None:
    """What a level of a feature needs.  The feature is known; ToolError for a metadata.version that is not."""
    shown = f"{name}={level}"
    if name == METADATA_VERSION:
        if level not in METADATA_VERSION_NAMES:
            raise ToolError(f"Unknown metadata.version {level}")
        shown += f" ({METADATA_VERSION_NAMES[level]})"
    needed = DEPENDENCIES.get((name, level), {})
    print(f"{shown} requires:" if needed else f"{shown} has no dependencies.")
    for other, least in needed.items():
        print(f"    {other}={least} ({METADATA_VERSION_NAMES[least]})")
