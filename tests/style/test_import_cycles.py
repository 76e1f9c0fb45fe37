"""Import cycles: imports inside functions and below TYPE_CHECKING count.

Two modules that import each other cannot be understood one without the other. The few cycles that remain consist of
annotations: one import of each is below TYPE_CHECKING, so that nothing is imported in a circle at run time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from tests.style.sources import imports, modules

Graph = Mapping[str, set[str]]
# Each with the reason why the modules need each other's names. At most five; remove what is no longer found.
CYCLES_OF_ANNOTATIONS = {
    "kafkapy.config.broker_config <-> kafkapy.config.broker_file "
    "<-> kafkapy.config.consistency <-> kafkapy.config.role_rules <-> kafkapy.config.startup_rules": (
        "the rules receive the configuration that calls them"
    ),
}
MOST_CYCLES = 5


def lines_of_annotations(source: str) -> set[int]:
    """Returns the lines below `if TYPE_CHECKING:`."""
    return {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    }


def import_graph(*, with_annotations: bool) -> Graph:
    """Returns the modules that each module imports; a name imported from a package counts as its module."""
    known = modules()
    graph: dict[str, set[str]] = {}
    for module, path in known.items():
        left_out = set()
        if path.suffix == ".py" and not with_annotations:
            left_out = lines_of_annotations(path.read_text())
        targets = {name for line, name in imports(path) if line not in left_out and name in known}
        packages = {name for name in targets if any(other.startswith(f"{name}.") for other in targets)}
        graph[module] = targets - packages - {module}
    return graph


def cycles(graph: Graph) -> Iterator[frozenset[str]]:
    """Yields the strongly connected components of more than one module (Tarjan)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> Iterator[frozenset[str]]:
        numbers[module] = lowest[module] = len(numbers)
        stack.append(module)
        for target in graph[module]:
            if target not in numbers:
                yield from visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], numbers[target])
        if lowest[module] == numbers[module]:
            members = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(members) > 1:
                yield frozenset(members)

    for module in graph:
        if module not in numbers:
            yield from visit(module)


def shown(found: Iterable[frozenset[str]]) -> list[str]:
    return sorted(" <-> ".join(sorted(each)) for each in found)


def test_cycles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"g"}, "g": {"f", "e"}}
    assert shown(cycles(graph)) == ["a <-> b <-> c", "f <-> g"]


def test_no_import_is_circular_at_run_time():
    assert shown(cycles(import_graph(with_annotations=False))) == []


def test_cycles_of_annotations_are_few_and_listed():
    found = set(shown(cycles(import_graph(with_annotations=True))))
    assert sorted(found - set(CYCLES_OF_ANNOTATIONS)) == []
    assert len(CYCLES_OF_ANNOTATIONS) <= MOST_CYCLES
