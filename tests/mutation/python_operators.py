"""Mutation operators for Python: those of cosmic-ray that change one decision, and the removal of a statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

import parso
from cosmic_ray.ast import ast_nodes
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider

from tests.mutation.site import Site

# The other operators of cosmic-ray replace an operator by each other one (nearly all of these mutants fail on the first
# call) or a name by a random number.
_CHOSEN = (
    *("ReplaceComparisonOperator_" + names for names in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
    *("ReplaceComparisonOperator_" + names for names in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "GtE_Lt")),
    *("ReplaceBinaryOperator_" + names for names in ("Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Mod_Mul")),
    *("ReplaceBinaryOperator_" + names for names in ("RShift_LShift", "LShift_RShift", "BitAnd_BitOr", "BitOr_BitAnd")),
    *("ReplaceUnaryOperator_" + names for names in ("Delete_Not", "Delete_USub")),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "AddNot"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer", "ZeroIterationForLoop"),
)
# A mutant of these statements changes types or a log message, never what the program does.
_WITHOUT_EFFECT = ("log.", "logger.", "_log.", "_logger.", "logging.", "from ", "import ", "if TYPE_CHECKING")
_BINARY_EXPRESSIONS = ("arith_expr", "term", "expr", "and_expr", "shift_expr")

Position = tuple[int, int]


class RemoveStatement(Operator):
    """Replaces a call, an assignment to an attribute or item, or an augmented assignment by `pass`.

    Assignments of constructors are left alone: without them any test fails, with an AttributeError.
    """

    def mutation_positions(self, node: Any) -> Iterator[tuple[Position, Position]]:
        if node.type == "simple_stmt" and _is_removable(node.children[0]) and not _is_in_constructor(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        first = node.children[0].get_first_leaf()
        node.children[0] = parso.python.tree.Keyword("pass", first.start_pos, prefix=first.prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


def _is_removable(statement: Any) -> bool:
    children: list[Any] = getattr(statement, "children", [])
    if statement.type in ("atom_expr", "power"):
        return children[-1].type == "trailer" and children[-1].children[0] in ("(", "[")
    if statement.type != "expr_stmt" or children[1].type == "annassign":
        return False
    return children[1].type == "operator" and (children[1].value != "=" or children[0].type in ("atom_expr", "power"))


def _is_in_constructor(statement: Any) -> bool:
    function = statement.search_ancestor("funcdef")
    return function is not None and function.name.value == "__init__" and statement.children[0].type == "expr_stmt"


@cache
def _operators() -> dict[str, Any]:
    provider = OperatorProvider()
    return {"RemoveStatement": RemoveStatement(), **{name: provider[name]() for name in _CHOSEN}}


def sites(source: str) -> Iterator[Site]:
    """Yields all mutants of a Python source, except those of annotations, imports and log messages."""
    seen = dict.fromkeys(_operators(), 0)
    lines = source.splitlines()
    annotations = list(_annotations(source))
    for node in ast_nodes(parso.parse(source)):
        for name, operator in _operators().items():
            for start, _ in operator.mutation_positions(node):
                is_expression = not name.startswith("ReplaceBinary") or node.parent.type in _BINARY_EXPRESSIONS
                has_effect = not lines[start[0] - 1].lstrip().startswith(_WITHOUT_EFFECT)
                if is_expression and has_effect and not any(first <= start < last for first, last in annotations):
                    yield Site(start[0], name, seen[name])
                seen[name] += 1


def _annotations(source: str) -> Iterator[tuple[Position, Position]]:
    """Yields the start and the end of each annotation."""
    for node in ast.walk(ast.parse(source)):
        for name in ("annotation", "returns"):
            found = getattr(node, name, None)
            if found is not None:
                yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)


def mutate(source: str, site: Site) -> str:
    """Returns the source with the mutation made."""
    operator = _operators()[site.operator]
    tree = parso.parse(source)
    positions = ((node, index) for node in ast_nodes(tree) for index, _ in enumerate(operator.mutation_positions(node)))
    node, index = next(islice(positions, site.occurrence, None))
    siblings = node.parent.children
    siblings[next(place for place, each in enumerate(siblings) if each is node)] = operator.mutate(node, index)
    return str(tree.get_code())
