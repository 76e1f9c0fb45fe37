"""Feature levels as kafka-features and kafka-storage parse and print them."""

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
    """Returns the commands `version-mapping` and `feature-dependencies`, which kafka-features and kafka-storage share.

    `release_aliases` and `feature_aliases` are short forms of the flags --release-version and --feature; only one of
    the two tools has short forms.
    """
    feature = "A feature and its level: metadata.version=30. May be repeated."
    return (
        Command(
            "version-mapping", "Look up the default feature levels of a release.", (release_option(release_aliases),)
        ),
        Command(
            "feature-dependencies",
            "Look up which features a level of a feature depends on.",
            (Option("feature", feature, "FEATURE", aliases=feature_aliases, is_required=True),),
        ),
    )


def release_option(aliases: tuple[str, ...] = ()) -> Option:
    """Returns the option --release-version, whose default is the newest release."""
    text = f"The release, from {OLDEST_NAME} to {LATEST_NAME}; the newest by default."
    return Option("release-version", text, "RELEASE_VERSION", aliases=aliases)


def name_and_level(text: str) -> tuple[str, int]:
    """Parses a name and level such as `group.version=1`. Raises ToolError, with Kafka's text, for another text."""
    name, equals, level = text.partition("=")
    if not equals:
        raise ToolError(f"Can't parse feature=level string {text}: equals sign not found.")
    digits = level.strip()
    if not (digits.isascii() and digits.isdigit() and int(digits) <= _LARGEST):
        raise ToolError(f"Can't parse feature=level string {text}: unable to parse {digits} as a short.")
    return name.strip(), int(digits)


def level_of_release(name: str) -> int:
    """Returns the metadata.version of a release such as `4.0` or `4.0-IV3`.

    Raises ToolError, with Kafka's text, for an unknown release.
    """
    try:
        return metadata_version_named(name)
    except ValueError as error:
        raise ToolError(str(error)) from None


def print_version_mapping(release: str | None) -> None:
    """Prints the default feature levels of a release; None means the newest release."""
    level = level_of_release(release) if release is not None else LATEST_METADATA_VERSION
    print(f"metadata.version={level} ({release or METADATA_VERSION_NAMES[level]})")
    for feature, first in first_levels(level).items():
        print(f"{feature}={first}")


def print_dependencies(name: str, level: int) -> None:
    """Prints the dependencies of a level of a known feature. Raises ToolError for an unknown metadata.version."""
    shown = f"{name}={level}"
    if name == METADATA_VERSION:
        if level not in METADATA_VERSION_NAMES:
            raise ToolError(f"Unknown metadata.version {level}")
        shown += f" ({METADATA_VERSION_NAMES[level]})"
    needed = DEPENDENCIES.get((name, level), {})
    print(f"{shown} requires:" if needed else f"{shown} has no dependencies.")
    for other, least in needed.items():
        print(f"    {other}={least} ({METADATA_VERSION_NAMES[least]})")
