"""The tool `trogdor`: runs one of Trogdor's common workloads from its specification."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from kafkapy.errors import KafkapyError
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.declaration import Command, Example, Grammar, Tool
from kafkapy.tools.option import Arguments, Option, ToolError
from kafkapy.tools.tool import Termination, run_tool, sentence, stops_by
from kafkapy.tools.trogdor.connection_stress import ConnectionStress
from kafkapy.tools.trogdor.consume_bench import ConsumeBench
from kafkapy.tools.trogdor.produce_bench import ProduceBench
from kafkapy.tools.trogdor.round_trip import RoundTrip
from kafkapy.tools.trogdor.specification import Specification, read_specification
from kafkapy.tools.trogdor.workload import Workload

WORKLOADS: dict[str, Callable[[Specification], Workload]] = {
    "ProduceBench": ProduceBench,
    "ConsumeBench": ConsumeBench,
    "RoundTripWorkload": RoundTrip,
    "ConnectionStress": ConnectionStress,
}
# The field that names the nodes on which a workload runs.
_NODE_FIELDS = ("producerNode", "consumerNode", "clientNode", "clientNodes")


def run(arguments: Arguments) -> int:
    """Runs the workload and prints its results; returns the exit code: 1 if it failed or does not run on this node,
    else 0."""
    spec = read_specification(arguments["exec"])
    if spec.workload not in WORKLOADS:
        known = ", ".join(f"{name}Spec" for name in WORKLOADS)
        raise ToolError(f"{spec.fields.get('class')} is not a workload that can be run here: {known}")
    nodes = _nodes_of(spec)
    if arguments.has("node-name") and nodes and arguments["node-name"] not in nodes:
        print(
            "This task is not configured to run on this node.  It runs on node(s): "
            f"{', '.join(nodes)}, whereas this node is {arguments['node-name']}"
        )
        return 1
    await_broker(spec.client_properties())
    workload = WORKLOADS[spec.workload](spec)
    print(f"Waiting for completion of task:{_pretty(spec.fields)}", flush=True)
    failure = ""
    with stops_by(workload.stop) as signals:
        try:
            workload.run()
        except (KafkapyError, ToolError, OSError) as error:
            failure = sentence(error)
    status = _pretty(workload.status())
    if failure:
        print(f"Task failed with status {status} and error {failure}")
        return 1
    print(f"Task succeeded with status {status}")
    if signals:
        raise Termination(signals[0])
    return 0


def _pretty(value: Mapping[str, Any]) -> str:
    """Returns JSON text in the layout that Trogdor prints."""
    return json.dumps(value, indent=2, separators=(",", " : "), ensure_ascii=False)


def _nodes_of(spec: Specification) -> list[str]:
    """Returns the names of the nodes on which the workload runs; [] if the specification does not name any."""
    for name in _NODE_FIELDS:
        value = spec.fields.get(name)
        if value:
            return [str(each) for each in value] if isinstance(value, list) else [str(value)]
    return []


TOOL = Tool(
    name="trogdor",
    description=(
        "Runs one of the common workloads of Trogdor, Apache Kafka's test framework: ProduceBench, ConsumeBench, "
        "RoundTripWorkload and ConnectionStress. There is no coordinator: each workload runs in one process."
    ),
    run=run,
    grammar=Grammar.ARGPARSE4J,
    commands=(
        Command(
            "agent",
            "Run the workload of a specification and print its results",
            (
                Option(
                    "exec",
                    "The specification: a JSON file of Trogdor, or the JSON itself.",
                    "FILE",
                    is_required=True,
                    aliases=("e",),
                    completes="file",
                ),
                Option(
                    "node-name",
                    "The name of this node; a workload that the specification gives to another node is not run.",
                    "NAME",
                    aliases=("n",),
                ),
                Option(
                    "agent.config",
                    "The configuration of Trogdor's nodes, which has no effect here.",
                    "FILE",
                    aliases=("c",),
                    completes="file",
                ),
            ),
        ),
    ),
    examples=(Example("Write records as a specification says", "agent --exec produce_bench.json"),),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
