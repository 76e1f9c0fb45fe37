"""The tool `kafkapy doctor`: checks the machine, the configuration and the data of a broker, or a running cluster.

It changes nothing, and needs no running broker. The exit code is 1 if it finds a problem: something that prevents the
broker from starting or endangers its data.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from kafkapy.client.admin import Admin
from kafkapy.config import BrokerConfig
from kafkapy.errors import ConfigError
from kafkapy.tools.bootstrap import COMMAND_CONFIG, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.diagnosis.access import check_access
from kafkapy.tools.diagnosis.certificates import check_certificates
from kafkapy.tools.diagnosis.clock import check_clock, is_synchronized
from kafkapy.tools.diagnosis.cluster import check_cluster, read_cluster
from kafkapy.tools.diagnosis.configuration import check_configuration
from kafkapy.tools.diagnosis.data import check_data, check_idle_topics, take_inventory
from kafkapy.tools.diagnosis.disks import check_disks
from kafkapy.tools.diagnosis.finding import GOOD, PROBLEM, WARNING, Finding, Findings
from kafkapy.tools.diagnosis.groups import check_groups, check_last_deliveries, read_groups
from kafkapy.tools.diagnosis.limits import check_limits
from kafkapy.tools.diagnosis.ports import check_ports
from kafkapy.tools.diagnosis.quotas import check_quotas
from kafkapy.tools.diagnosis.system import System
from kafkapy.tools.option import INTEGER, Arguments, Option, UsageError
from kafkapy.tools.terminal import GREEN, RED, YELLOW, has_colours, painted
from kafkapy.tools.tool import run_tool

IDLE_DAYS = 30
_COLOURS = {GOOD: GREEN, WARNING: YELLOW, PROBLEM: RED}

OPTIONS = (
    Option(
        "config",
        "The broker's configuration file; without this flag the defaults are checked.",
        "file",
        completes="file",
    ),
    Option(
        "bootstrap-server",
        "Check the running cluster with these brokers instead of this machine; every node is asked.",
        "HOST:PORT",
        has_default_cluster=False,
    ),
    COMMAND_CONFIG,
    Option(
        "override",
        "A key and value that take precedence over the file; may be repeated.",
        "key=value",
        completes="broker-key",
    ),
    Option(
        "idle-days", "Report topics that were not written to for this many days.", "days", INTEGER, default=IDLE_DAYS
    ),
    Option("json", "Print the findings as JSON."),
    Option("quiet", "Print only notes, warnings and problems."),
)


def diagnose(path: str | None, overrides: dict[str, str], idle_days: int, system: System) -> Findings:
    """Yields the findings of all checks, one subject after the other.

    `path` is the broker's configuration file; None means that there is no file. `overrides` are the keys on the command
    line, which take precedence. `idle_days` is the number of days without a write after which a topic counts as idle.
    `system` gives access to this machine's limits, disks and clock.
    """
    try:
        config = BrokerConfig.load(path, overrides)
    except ConfigError as error:
        yield Finding(
            PROBLEM, "configuration", str(error).rstrip("."), "the broker refuses to start with this configuration"
        )
        return
    inventory = take_inventory(config.log_dirs)
    yield from check_configuration(config)
    yield from check_certificates(config)
    yield from check_data(config, inventory)
    yield from check_access(config)
    yield from check_limits(system, inventory.partitions)
    yield from check_disks(system, config.log_dirs)
    yield from check_ports(config, is_running=inventory.is_running)
    if path is not None and inventory.is_running and config.kafkapy_metrics_listener:
        yield from check_quotas(path)
        yield from check_last_deliveries(path)
    yield from check_clock(system, inventory.newest_change_s, synchronized=is_synchronized())
    yield from check_idle_topics(config, system, inventory, idle_days)


def run(arguments: Arguments) -> int:
    """Prints the findings; returns the exit code, which is 1 if there is a problem."""
    pairs = [word.partition("=") for word in arguments.values("override")]
    if not all(key and equals for key, equals, _ in pairs):
        raise UsageError("--override takes key=value")
    overrides = {key.strip(): value.strip() for key, _, value in pairs}
    if arguments.has("bootstrap-server"):
        with Admin(admin_properties(arguments)) as admin:
            findings = [*check_cluster(read_cluster(admin)), *check_groups(read_groups(admin))]
    else:
        findings = list(diagnose(arguments["config"], overrides, arguments["idle-days"], System()))
    shown = [finding for finding in findings if not arguments["quiet"] or finding.level != GOOD]
    if arguments["json"]:
        print(json.dumps([finding._asdict() for finding in shown], indent=2))
    else:
        colours = _COLOURS if has_colours() else {}
        for finding in shown:
            level = f"{finding.level:<8}"
            colour = colours.get(finding.level)
            print(f"{painted(level, colour) if colour else level} {finding.subject}: {finding.text}")
            if finding.advice:
                print(f"{'':<8}   {finding.advice}")
    return 1 if any(finding.level == PROBLEM for finding in findings) else 0


TOOL = Tool(
    name="doctor",
    description="Checks a broker's machine, configuration and data for problems; the broker need not run. With "
    "--bootstrap-server, checks a running cluster. Changes nothing.\n"
    "Exit codes: 0 without a problem (notes and warnings do not count), 1 with a problem or for a wrong command.",
    run=run,
    options=OPTIONS,
    needs_arguments=False,
    examples=(
        Example("Before the first start", "--config /etc/kafkapy/server.properties"),
        Example("A running cluster", "--bootstrap-server localhost:9092"),
        Example(
            "In a script, without good findings; the exit code is 1 after a problem",
            "--config server.properties --quiet",
        ),
    ),
)


def main(arguments: Sequence[str]) -> int:
    return run_tool(TOOL, arguments)
