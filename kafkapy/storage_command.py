"""The tool `kafka-storage`: formats log directories, describes them, and prints the feature levels of releases.

This module is not in the package `tools`, because that package may not import the broker's code for formatting.
"""

from __future__ import annotations

import os

from kafkapy.config import BrokerConfig
from kafkapy.config.properties import read_properties
from kafkapy.controller.scram_credentials import ScramUpsertion, credential_record
from kafkapy.decimal_text import is_number
from kafkapy.errors import ConfigError
from kafkapy.metadata.features import (
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    OLDEST_METADATA_VERSION,
    SUPPORTED_FEATURES,
    supports_scram,
)
from kafkapy.metadata.release_features import (
    DEPENDENCIES,
    METADATA_VERSION_NAMES,
    first_levels,
)
from kafkapy.protocol.messages.metadata_records import UserScramCredentialRecord
from kafkapy.quorum.format_directory import check_identity, format_node
from kafkapy.quorum.voters import (
    DEFAULT_CONTROLLER_LISTENER,
    ControllerListener,
    VoterSet,
    parse_voter,
    single_voter,
)
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.meta_properties import (
    FILE_NAME,
    MalformedMetaProperties,
    MetaProperties,
    read_meta_properties,
)
from kafkapy.tools.declaration import Command, Example, Grammar, Tool
from kafkapy.tools.feature_levels import (
    level_of_release,
    look_up_commands,
    name_and_level,
    print_dependencies,
    print_version_mapping,
    release_option,
)
from kafkapy.tools.option import Arguments, Option, ToolError
from kafkapy.tools.scram_argument import parse_scram
from kafkapy.tools.tool import run_tool
from kafkapy.types import SystemClock, random_uuid, uuid_to_string

_QUORUM = "quorum"
# The metadata.version of Apache Kafka's next release, which 4.3 refuses.
UNSTABLE_METADATA_VERSION = LATEST_METADATA_VERSION + 1
UNSTABLE_METADATA_VERSION_NAME = "4.4-IV0"


def directories_of(config: BrokerConfig) -> list[str]:
    """Returns the log directories and the directory of the metadata log, sorted."""
    return sorted({*config.log_dirs, config.metadata_log_dir})


def info(arguments: Arguments) -> int:
    """Carries out `info`: prints the meta.properties of the configured directories; returns the exit code.

    The exit code is 1 if a directory is missing or not formatted, if its meta.properties cannot be read, if the
    directories have different cluster ids or node ids, or if they were formatted for ZooKeeper; otherwise 0.
    """
    found: list[str] = []
    problems: list[str] = []
    first: MetaProperties | None = None
    for directory in directories_of(BrokerConfig.load(arguments["config"], {})):
        if not os.path.isdir(directory):
            problems.append(f"{directory} {'is not a directory' if os.path.exists(directory) else 'does not exist'}")
            continue
        found.append(directory)
        try:
            properties = read_meta_properties(directory)
        except (ConfigError, OSError) as error:
            problems.append(f"Error loading {os.path.join(directory, FILE_NAME)}: {error}")
            continue
        if properties is None:
            problems.append(f"{directory} is not formatted.")
        elif first is None:
            first = properties
        elif first.cluster_id != properties.cluster_id:
            problems.append("Mismatched cluster IDs between storage directories.")
        elif first.node_id != properties.node_id:
            problems.append("Mismatched node IDs between storage directories.")
    if first is not None and first.version == 0:
        problems.append(
            "The kafka configuration file appears to be for a cluster in KRaft mode, but the directories are "
            "formatted for legacy mode."
        )
    _print_list("Found log director", ("y:", "ies:"), found)
    if first is not None:
        print(f"Found metadata: {_java_map(first)}\n")
    _print_list("Found problem", (":", "s:"), problems)
    return 1 if problems else 0


def _print_list(head: str, endings: tuple[str, str], lines: list[str]) -> None:
    if lines:
        print(head + endings[len(lines) > 1])
        for line in lines:
            print(f"  {line}")
        print()


def _java_map(properties: MetaProperties) -> str:
    fields = {"node.id" if properties.version else "broker.id": str(properties.node_id), "version": properties.version}
    if properties.cluster_id is not None:
        fields["cluster.id"] = properties.cluster_id
    if properties.directory_id is not None:
        fields["directory.id"] = uuid_to_string(properties.directory_id)
    return "{" + ", ".join(f"{name}={fields[name]}" for name in sorted(fields)) + "}"


def chosen_features(levels: dict[str, int], release: int | None, *, is_dynamic: bool) -> list[tuple[str, int]]:
    """Returns the features that the first start finalizes, metadata.version first; features of level 0 are left out.

    `levels` maps the names of features to levels, as the flags --feature have them. `release` is the metadata.version
    of --release-version, None without it. `is_dynamic` is True if the quorum's voters are dynamic (KIP-853). Raises
    ToolError, with Kafka's text, for an unknown feature or level, for a level whose dependency is not met, and for
    flags that contradict each other.
    """
    if METADATA_VERSION in levels and release is not None:
        raise ToolError("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
    metadata_version = levels.get(METADATA_VERSION, LATEST_METADATA_VERSION) if release is None else release
    levels = {name: level for name, level in levels.items() if name != METADATA_VERSION}
    _check_metadata_version(metadata_version)
    known = sorted(name for name in SUPPORTED_FEATURES if name != METADATA_VERSION)
    for name in sorted(levels):
        if name not in known:
            raise ToolError(f"Unsupported feature: {name}. Supported features are: {', '.join(known)}")
    _check_kraft_version(levels.get(KRAFT_VERSION, int(is_dynamic)), is_dynamic=is_dynamic)
    chosen = {**first_levels(metadata_version), KRAFT_VERSION: int(is_dynamic), **levels}
    for name, level in sorted(chosen.items()):
        lowest, highest = SUPPORTED_FEATURES[name]
        if not lowest <= level <= highest:
            raise ToolError(f"No feature:{name} with feature level {level}")
        for needed, least in DEPENDENCIES.get((name, level), {}).items():
            if metadata_version < least:
                raise ToolError(f"{name} could not be set to {level} because it depends on {needed} level {least}")
    del chosen[KRAFT_VERSION]  # it is in the snapshot with the voters
    return [(METADATA_VERSION, metadata_version), *sorted((name, level) for name, level in chosen.items() if level)]


def _check_metadata_version(level: int) -> None:
    if level == UNSTABLE_METADATA_VERSION:
        raise ToolError(f"metadata.version {UNSTABLE_METADATA_VERSION_NAME} is not yet stable.")
    if level not in METADATA_VERSION_NAMES:
        raise ToolError(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from "
            f"{OLDEST_METADATA_VERSION} to {UNSTABLE_METADATA_VERSION}."
        )


def _check_kraft_version(level: int, *, is_dynamic: bool) -> None:
    if is_dynamic and level == 0:
        raise ToolError(
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the flags --standalone, "
            "--initial-controllers, or --no-initial-controllers is used. For dynamic controllers support, try removing "
            "the --feature flag for kraft.version."
        )
    if not is_dynamic and level > 0:
        raise ToolError(
            f"Cannot set kraft.version to {level} unless controller.quorum.voters is empty and one of the flags "
            "--standalone, --initial-controllers, or --no-initial-controllers is used. For dynamic controllers "
            "support, try using one of --standalone, --initial-controllers, or --no-initial-controllers and removing "
            "controller.quorum.voters."
        )


def _check_level(name: str, level: int) -> None:
    lowest, highest = SUPPORTED_FEATURES[name]
    if not lowest <= level <= highest:
        raise ToolError(f"Feature level {level} is not supported for feature {name}")


def format_command(arguments: Arguments) -> int:
    """Carries out `format`: formats the directories of a configuration; returns 0, the exit code."""
    config = BrokerConfig.load(arguments["config"], {})
    if "process.roles" not in read_properties(arguments["config"]):
        raise ToolError('Missing required configuration "process.roles" which has no default value.')
    release = level_of_release(arguments["release-version"]) if arguments.has("release-version") else None
    levels = dict(name_and_level(text) for text in arguments.values("feature"))
    voters = chosen_voters(arguments, config)
    features = chosen_features(levels, release, is_dynamic=not config.static_voters)
    credentials = chosen_credentials(arguments, features[0][1])
    directories = directories_of(config)
    found, unreadable = _read_directories(directories)
    check_identity(found, config.node_id, arguments["cluster-id"])
    formatted = [directory for directory, properties in found.items() if properties is not None]
    if formatted and not arguments["ignore-formatted"]:
        raise ToolError(
            f"Log directory {formatted[0]} is already formatted. Use --ignore-formatted to ignore this directory and "
            "format the others."
        )
    for directory in unreadable:
        print(f"I/O error trying to read log directory {directory}. Ignoring...")
    if not found:
        raise ToolError("No available log directories to format.")
    if len(formatted) == len(found):
        print("All of the log directories are already formatted.")
        return 0
    _print_plan(found, _metadata_kind(config.node_id, voters, config.metadata_log_dir), features, credentials)
    format_node(
        found,
        config.metadata_log_dir,
        config.node_id,
        Filesystem(),
        SystemClock(),
        cluster_id=arguments["cluster-id"],
        features=features,
        credentials=credentials,
        voters=voters,
    )
    return 0


def chosen_voters(arguments: Arguments, config: BrokerConfig) -> VoterSet | None:
    """Returns the first voters of a dynamic quorum that the arguments name, None if they name none.

    Raises ToolError, with Kafka's text, if the flags contradict the configuration, or if they name no voters and the
    configuration needs some; raises ConfigError for a voter in another form than ID@HOST:PORT:DIRECTORY_ID.
    """
    is_named = arguments.has("standalone") or arguments.has("initial-controllers")
    if config.static_voters and is_named:
        raise ToolError(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
            "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
            "controller.quorum.bootstrap.servers instead."
        )
    if arguments.has("initial-controllers"):
        return _initial_voters(arguments["initial-controllers"], config)
    if arguments.has("standalone"):
        if not config.is_controller:
            raise ToolError("You can only use --standalone on a controller.")
        return single_voter(config.node_id, random_uuid(), _own_listener(config))
    if not arguments["no-initial-controllers"] and config.is_controller and not config.static_voters:
        raise ToolError(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
            "--standalone, --initial-controllers, or --no-initial-controllers."
        )
    return None


def _own_listener(config: BrokerConfig) -> ControllerListener:
    """Returns the advertised listener at which other nodes reach this controller."""
    for listener in config.advertised_controller_listeners:
        return ControllerListener(listener.name, listener.host or "localhost", listener.port)
    return DEFAULT_CONTROLLER_LISTENER


def _initial_voters(text: str, config: BrokerConfig) -> VoterSet:
    """Returns the voters that `text`, the value of --initial-controllers, lists.

    Their addresses belong to the listener that is the first name in controller.listener.names. Raises ToolError if the
    list is empty or has a node id twice, and ConfigError for a voter in another form than ID@HOST:PORT:DIRECTORY_ID.
    """
    name = next(iter(config.controller_listener_names), DEFAULT_CONTROLLER_LISTENER.name)
    voters = [parse_voter(each, name) for each in text.split(",") if each]
    if not voters:
        raise ToolError("No voters given.")
    ids = [voter.node_id for voter in voters]
    duplicate = next((each for index, each in enumerate(ids) if each in ids[:index]), None)
    if duplicate is not None:
        raise ToolError(f"Node id {duplicate} was specified more than once.")
    return VoterSet(voters)


def _read_directories(directories: list[str]) -> tuple[dict[str, MetaProperties | None], list[str]]:
    """Returns the meta.properties of each readable directory, and the list of unreadable directories.

    A readable directory without meta.properties has None.
    """
    found: dict[str, MetaProperties | None] = {}
    unreadable = []
    for directory in directories:
        try:
            found[directory] = read_meta_properties(directory)
        except (MalformedMetaProperties, OSError):
            unreadable.append(directory)
    return found, unreadable


def chosen_credentials(arguments: Arguments, metadata_version: int) -> list[UserScramCredentialRecord]:
    """Returns the SCRAM credentials that the first start stores.

    Raises ToolError, with Kafka's text, for an invalid credential, or if `metadata_version` does not support
    credentials.
    """
    given = [parse_scram(text) for text in arguments.values("add-scram")]
    if given and not supports_scram(metadata_version):
        oldest = next(METADATA_VERSION_NAMES[each] for each in METADATA_VERSION_NAMES if supports_scram(each))
        raise ToolError(f"SCRAM is only supported in metadata.version {oldest} or later.")
    return [credential_record(ScramUpsertion(*each)) for each in given]


def _java_bytes(content: bytes) -> str:
    """Returns bytes as Java prints an array of signed bytes, such as `[1, -2]`."""
    return str([each - 256 if each > 127 else each for each in content])


def _shown_credential(record: UserScramCredentialRecord) -> str:
    fields = f"name='{record.name}', mechanism={record.mechanism}, salt={_java_bytes(record.salt)}"
    keys = f"storedKey={_java_bytes(record.stored_key)}, serverKey={_java_bytes(record.server_key)}"
    return f"UserScramCredentialRecord({fields}, {keys}, iterations={record.iterations})"


def _metadata_kind(node_id: int, voters: VoterSet | None, directory: str) -> dict[str, str]:
    """Returns {directory: Kafka's text for the kind of this directory}, for the directory with the metadata log.

    The text is "metadata" if the quorum is not dynamic (`voters` is None). Otherwise it is "dynamic metadata voter" if
    the node is a voter, and "dynamic metadata" if it is not.
    """
    if voters is None:
        return {directory: "metadata"}
    return {directory: "dynamic metadata" if voters.get(node_id) is None else "dynamic metadata voter"}


def _print_plan(
    found: dict[str, MetaProperties | None],
    kinds: dict[str, str],
    features: list[tuple[str, int]],
    credentials: list[UserScramCredentialRecord],
) -> None:
    shown = [f"FeatureLevelRecord(name='{name}', featureLevel={level})" for name, level in features]
    shown += map(_shown_credential, credentials)
    records = ", ".join(f"ApiMessageAndVersion({each} at version 0)" for each in shown)
    version = features[0][1]
    print(
        f"Bootstrap metadata: BootstrapMetadata(records=[{records}], metadataVersionLevel={version}, "
        "source=format command)"
    )
    for directory, properties in found.items():
        if properties is None:
            kind = kinds.get(directory, "data")
            print(f"Formatting {kind} directory {directory} with metadata.version {METADATA_VERSION_NAMES[version]}.")


def version_mapping(arguments: Arguments) -> int:
    """Carries out `version-mapping`: prints the feature levels of a release; returns 0, the exit code."""
    print_version_mapping(arguments["release-version"])
    return 0


def feature_dependencies(arguments: Arguments) -> int:
    """Carries out `feature-dependencies`: prints the features on which the given feature levels depend.

    Returns 0, the exit code. Raises ToolError for an unknown feature or level.
    """
    for text in arguments.values("feature"):
        name, equals, level_text = text.partition("=")
        if not equals:
            raise ToolError(
                f"Invalid feature format: {text}. Expected format: 'feature=version' (e.g. 'group.version=1')"
            )
        if not is_number(level_text):
            raise ToolError(f"Invalid version format: {level_text} for feature {name}")
        level = int(level_text)
        if name not in SUPPORTED_FEATURES:
            raise ToolError(f"Unknown feature: {name}")
        if name != METADATA_VERSION:
            _check_level(name, level)
        print_dependencies(name, level)
    return 0


def random_uuid_command(arguments: Arguments) -> int:
    """Carries out `random-uuid`: prints a random id; returns 0, the exit code."""
    print(uuid_to_string(random_uuid()))
    return 0


_RUN = {
    "info": info,
    "format": format_command,
    "version-mapping": version_mapping,
    "feature-dependencies": feature_dependencies,
    "random-uuid": random_uuid_command,
}


def run(arguments: Arguments) -> int:
    """Carries out the subcommand that the arguments name; returns the exit code, 1 if `info` finds a problem."""
    return _RUN[arguments.command](arguments)


_CONFIG = Option(
    "config", "The broker's configuration file.", "CONFIG", is_required=True, aliases=("c",), completes="file"
)
_RELEASE = release_option(("r",))
COMMANDS = (
    Command("info", "Get information about the Kafka log directories on this node.", (_CONFIG,)),
    Command(
        "format",
        "Format the Kafka log directories on this node.",
        (
            _CONFIG,
            Option(
                "cluster-id",
                "The id of the cluster, such as random-uuid prints.",
                "CLUSTER_ID",
                is_required=True,
                aliases=("t",),
            ),
            Option("ignore-formatted", "Skip directories that are formatted already.", aliases=("g",)),
            _RELEASE,
            Option("feature", "The level of a feature: group.version=1. May be repeated.", "FEATURE", aliases=("f",)),
            Option(
                "add-scram",
                "A credential that the first start stores: SCRAM-SHA-256=[name=alice,password=alice-secret], or with "
                'iterations=8192, salt="N3E=" and saltedpassword="YCE=". May be repeated.',
                "ADD_SCRAM",
                aliases=("S",),
            ),
            Option(
                "standalone",
                "Make this node the quorum's only voter; controller.quorum.voters must not be set.",
                aliases=("s",),
                group=_QUORUM,
            ),
            Option(
                "initial-controllers",
                "The quorum's first voters, the same on every node: id@host:port:directory, separated by commas, with "
                "a random-uuid as the id of the directory with the metadata log.",
                "INITIAL_CONTROLLERS",
                aliases=("I",),
                group=_QUORUM,
            ),
            Option(
                "no-initial-controllers",
                "Name no voters; a controller that joins a quorum later is formatted so.",
                aliases=("N",),
                group=_QUORUM,
            ),
        ),
    ),
    *look_up_commands(("r",), ("f",)),
    Command("random-uuid", "Print a random UUID.", ()),
)
TOOL = Tool(
    name="storage",
    description="The Kafka storage tool.",
    run=run,
    commands=COMMANDS,
    grammar=Grammar.ARGPARSE4J,
    kafka_name="kafka-storage",
    examples=(
        Example("A new id for a cluster", "random-uuid"),
        Example(
            "Format the directories of a single node",
            "format --standalone -t DOmtQuZXQo-RFPyau_d8Xg -c server.properties",
        ),
        Example(
            "Format one of two controllers that begin a cluster; the other one is formatted with the same words",
            "format -t DOmtQuZXQo-RFPyau_d8Xg -c server.properties -I "
            "1@a:9093:JEXY6aqzQY-32P5TStzaFg,2@b:9093:MvDxzVmcRsaTz33bUuRU6A",
        ),
        Example("Describe the directories", "info -c server.properties"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
