"""The tool `kafka-features`: prints and changes feature levels of the cluster, and prints the levels of releases."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.client.admin import Admin, FeatureUpdate, UpgradeType
from kafkapy.errors import ApiError
from kafkapy.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES
from kafkapy.metadata.release_features import METADATA_VERSION_NAMES, first_levels
from kafkapy.tools.bootstrap import JSON, SERVERS_HELP, admin_properties
from kafkapy.tools.declaration import Command, Example, Grammar, Tool
from kafkapy.tools.feature_levels import (
    LATEST_NAME,
    OLDEST_NAME,
    level_of_release,
    look_up_commands,
    name_and_level,
    print_dependencies,
    print_version_mapping,
)
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool

_CONNECTION = "connection"
# Subcommand -> its participle, for messages.
_DONE = {"upgrade": "upgraded", "downgrade": "downgraded", "disable": "disabled"}


def run(arguments: Arguments) -> int:
    """Carries out the subcommand; `version-mapping` and `feature-dependencies` need no broker.

    Returns 0, the exit code.
    """
    if arguments.command == "version-mapping":
        print_version_mapping(arguments["release-version"])
        return 0
    if arguments.command == "feature-dependencies":
        for text in arguments.values("feature"):
            _look_up(*name_and_level(text))
        return 0
    if not arguments.has("bootstrap-server") and not arguments.has("bootstrap-controller"):
        raise UsageError("You must specify either --bootstrap-controller or --bootstrap-server.")
    with Admin(admin_properties(arguments)) as admin:
        if arguments.command == "describe":
            describe(admin, arguments)
        else:
            _update(admin, arguments, chosen_updates(arguments))
    return 0


def describe(admin: Admin, arguments: Arguments) -> None:
    """Carries out `describe`: prints the levels that the broker supports and those that the cluster has finalized."""
    features = admin.describe_features(broker=arguments["node-id"])
    levels = {
        name: (supported.lowest, supported.highest, finalized.highest if finalized else 0)
        for name, supported in sorted(features.supported.items())
        for finalized in (features.finalized.get(name),)
    }
    epoch = features.epoch if features.epoch >= 0 else None
    if arguments["json"]:
        keys = ("lowest_supported", "highest_supported", "finalized")
        shown = {name: dict(zip(keys, each, strict=True)) for name, each in levels.items()}
        print_json({"epoch": epoch, "features": shown})
        return
    for name, each in levels.items():
        lowest, highest, finalized_level = (_shown(name, level) for level in each)
        print(
            f"Feature: {name:<42}SupportedMinVersion: {lowest:<17}SupportedMaxVersion: {highest:<17}"
            f"FinalizedVersionLevel: {finalized_level:<17}Epoch: {'-' if epoch is None else epoch}"
        )


def _shown(feature: str, level: int) -> str:
    """Returns the text of a feature level: the name of the level for metadata.version, the number for other
    features."""
    return METADATA_VERSION_NAMES.get(level, f"UNKNOWN [{level}]") if feature == METADATA_VERSION else str(level)


def chosen_updates(arguments: Arguments) -> dict[str, FeatureUpdate]:
    """Returns the feature levels that the subcommand upgrade, downgrade or disable has to set.

    Raises ToolError, with Kafka's text, if the flags name no feature or the same feature twice.
    """
    command = arguments.command
    kind = UpgradeType.UPGRADE
    if command != "upgrade":
        kind = UpgradeType.UNSAFE_DOWNGRADE if arguments["unsafe"] else UpgradeType.SAFE_DOWNGRADE
    if command == "disable":
        given = [(name, 0) for name in arguments.values("feature")]
    else:
        given = _given_levels(arguments)
    levels: dict[str, int] = {}
    for name, level in given:
        if name in levels:
            raise ToolError(f"Feature {name} was specified more than once.")
        levels[name] = level
    if not levels:
        raise ToolError(f"You must specify at least one feature to {command}")
    return {name: FeatureUpdate(level, kind) for name, level in levels.items()}


def _given_levels(arguments: Arguments) -> list[tuple[str, int]]:
    """Returns the name and level of each feature that the flags set.

    They are the features of the release if --release-version is given, otherwise those of --metadata and --feature.
    Raises ToolError if --release-version is given together with one of the others.
    """
    release, metadata = arguments["release-version"], arguments["metadata"]
    if release is not None:
        if metadata is not None or arguments.has("feature"):
            raise ToolError("Can not specify `release-version` with other feature flags.")
        level = level_of_release(release)
        # An upgrade leaves out features of level 0. The order is Kafka's, since the broker reports the first error.
        is_upgrade = arguments.command == "upgrade"
        others = [(name, first) for name, first in first_levels(level).items() if first or not is_upgrade]
        return [*others, (METADATA_VERSION, level)]
    given = []
    if metadata is not None:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        given.append((METADATA_VERSION, level_of_release(metadata)))
    return given + [name_and_level(text) for text in arguments.values("feature")]


def _update(admin: Admin, arguments: Arguments, updates: Mapping[str, FeatureUpdate]) -> None:
    """Sets the levels, or validates them with --dry-run, and prints the outcomes. Raises ToolError if an update
    failed."""
    command, is_dry_run = arguments.command, arguments["dry-run"]
    errors: Mapping[str, ApiError]
    try:
        errors = admin.update_features(updates, validate_only=is_dry_run).errors
    except ApiError as error:  # the whole request failed
        errors = dict.fromkeys(updates, error)
    for name in sorted(updates):
        level = "" if command == "disable" else f" to {updates[name].level}"
        if name in errors:
            print(f"{'Can' if is_dry_run else 'Could'} not {command} {name}{level}. {errors[name].message}")
        else:
            print(f"{name} {'can be' if is_dry_run else 'was'} {_DONE[command]}{level}.")
    if errors:
        raise ToolError(f"{len(errors)} out of {len(updates)} operation(s) failed.")


def _look_up(name: str, level: int) -> None:
    """Prints the dependencies of a feature level. Raises ToolError, with Kafka's text, for an unknown feature."""
    if name not in SUPPORTED_FEATURES:
        raise ToolError(f"Unknown feature: {name}")
    lowest, highest = SUPPORTED_FEATURES[name]
    if name != METADATA_VERSION and not lowest <= level <= highest:
        raise ToolError(f"No feature:{name} with feature level {level}")
    print_dependencies(name, level)


def _updating(name: str, description: str, example: str, *flags: Option) -> Command:
    """Returns the declaration of the command `name`, which is `upgrade` or `downgrade`.

    `example` is the name of a metadata.version for the help text; `flags` are further options.
    """
    return Command(
        name,
        description,
        (
            Option(
                "metadata",
                f"(DEPRECATED) The metadata.version to {name} to, by its name: {example}.",
                "METADATA",
                is_deprecated=True,
            ),
            Option(
                "release-version",
                f"The release to whose levels all features are {_DONE[name]}, {OLDEST_NAME} to {LATEST_NAME}; "
                "version-mapping prints them.",
                "RELEASE_VERSION",
            ),
            Option("feature", "A feature and its level: metadata.version=25. May be repeated.", "FEATURE"),
            *flags,
            Option("dry-run", f"Validate this {name} without carrying it out."),
        ),
    )


_UNSAFE = Option("unsafe", "Allow the change even if metadata is lost.")
TOOL = Tool(
    name="features",
    description="This tool manages feature flags in Kafka.",
    run=run,
    grammar=Grammar.ARGPARSE4J,
    kafka_name="kafka-features",
    usage_line="Command line error: {}. Type --help for help.",
    options=(
        Option(
            "bootstrap-server",
            SERVERS_HELP,
            "BOOTSTRAP_SERVER",
            group=_CONNECTION,
        ),
        Option(
            "bootstrap-controller",
            "The controllers to connect to instead.",
            "BOOTSTRAP_CONTROLLER",
            group=_CONNECTION,
        ),
        Option(
            "command-config",
            "Property file containing configs to be passed to Admin Client.",
            "COMMAND_CONFIG",
            completes="file",
        ),
    ),
    commands=(
        Command(
            "describe",
            "Describes the current active feature flags.",
            (Option("node-id", "The id of the broker to query; by default any.", "NODE_ID", INTEGER), JSON),
        ),
        _updating("upgrade", "Upgrade one or more feature flags.", "4.0-IV3"),
        _updating("downgrade", "Downgrade one or more feature flags.", "3.9-IV0", _UNSAFE),
        Command(
            "disable",
            "Disable one or more feature flags. This is the same as downgrading the version to zero.",
            (
                Option("feature", "The feature. May be repeated.", "FEATURE"),
                _UNSAFE,
                Option("dry-run", "Validate this without carrying it out."),
            ),
        ),
        *look_up_commands(),
    ),
    examples=(
        Example("The levels of all features", "--bootstrap-server localhost:9092 describe"),
        Example(
            "Check an upgrade of all features to a release",
            "--bootstrap-server localhost:9092 upgrade --release-version 4.3 --dry-run",
        ),
        Example("Upgrade one feature", "--bootstrap-server localhost:9092 upgrade --feature share.version=1"),
        Example("The feature levels of a release", "version-mapping --release-version 4.0"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
