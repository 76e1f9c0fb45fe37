"""Routing rules as data: which topics a record goes to. This module has no state and does no I/O.

The rules are an object of JSON:

    {"from": ["orders"],
     "rules": [{"name": "big", "when": ["json.amount>=1000"], "to": ["orders.big", "audit"], "stop": true},
               {"name": "eu", "when": ["header.region=eu", "!header.test"], "to": ["orders.eu"]}],
     "otherwise": ["orders.rest"]}

A record goes to the topics of every rule whose conditions all hold, each topic once, until a rule with "stop"; a record
that no rule matches goes to "otherwise".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kafkapy.client.reliable.chain_headers import number_of
from kafkapy.client.reliable.conditions import Condition, RecordView, all_hold, parse_condition
from kafkapy.client.reliable.records import RecordHeaders, SourceRecord
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

# The number of routers that a record has passed; a record with too many goes in circles.
HOPS = "kafkapy.route.hops"
MOST_HOPS = 16
MOST_RULES = 10_000


class Rule(NamedTuple):
    """One routing rule: a record that meets all `conditions` goes to the topics `targets`.

    If the rule matches and `stops` is True, the rules after it are not evaluated.
    """

    name: str
    conditions: tuple[Condition, ...]
    targets: tuple[str, ...]
    stops: bool


class Route(NamedTuple):
    """The decision for one record: the topics to send it to, the names of the rules that matched, and the headers to
    send.

    is_loop: the record has passed too many routers and must not be sent.
    has_invalid_json: a condition needed the value as JSON, and it is not JSON.
    """

    targets: tuple[str, ...]
    rules: tuple[str, ...]
    headers: RecordHeaders
    is_loop: bool
    has_invalid_json: bool


class RoutingTable:
    """Validated rules. The object does not change after its construction."""

    def __init__(self, sources: Sequence[str], rules: Sequence[Rule], otherwise: Sequence[str] = ()) -> None:
        """Checks the rules for records of the topics `sources`; records that match no rule go to the topics
        `otherwise`.

        Raises ConfigError without sources, and for a rule that sends records to a source.
        """
        self.sources = tuple(sources)
        self.rules = tuple(rules)
        self.otherwise = tuple(otherwise)
        if not sources:
            raise ConfigError('The rules name no topic in "from"')
        for name, targets in [*((f"The rule {each.name}", each.targets) for each in rules), ("otherwise", otherwise)]:
            loops = set(targets) & set(sources)
            if loops:
                raise ConfigError(f"{name} sends records to {min(loops)}, from which they are read: a loop")

    @property
    def targets(self) -> frozenset[str]:
        """All topics that records may be sent to, by the rules or because no rule matches."""
        return frozenset(self.otherwise).union(*(each.targets for each in self.rules))

    def route(self, record: SourceRecord) -> Route:
        """Returns the decision for a record: the targets of all rules that match, or those for records that match no
        rule.
        """
        view = RecordView(record)
        targets: dict[str, None] = {}
        names = []
        for rule in self.rules:
            if all_hold(rule.conditions, view):
                names.append(rule.name)
                targets.update(dict.fromkeys(rule.targets))
                if rule.stops:
                    break
        if not names:
            targets.update(dict.fromkeys(self.otherwise))
        hops = _hops(record.headers) + 1
        headers = (*(each for each in record.headers if each[0] != HOPS), (HOPS, b"%d" % hops))
        return Route(tuple(targets), tuple(names), headers, hops > MOST_HOPS, view.has_invalid_json)


def _hops(headers: RecordHeaders) -> int:
    """Returns the number of routers that a record has passed; 0 if its header HOPS is missing or cannot be read."""
    for name, value in headers:
        if name == HOPS:
            try:
                return min(number_of(value), MOST_HOPS)
            except ValueError:
                return 0
    return 0


def parse_rules(text: str, sources: Sequence[str] = ()) -> RoutingTable:
    """Returns the table of a file's text; `sources` replace its "from". Raises ConfigError that names the fault."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The rules are not JSON: {error}") from error
    _check_object(content, "The rules", {"from", "rules", "otherwise"})
    found = content.get("rules", [])
    if not isinstance(found, list) or len(found) > MOST_RULES:
        raise ConfigError(f'"rules" is not a list of at most {MOST_RULES} objects')
    rules = [_rule(each, number) for number, each in enumerate(found, 1)]
    return RoutingTable(
        sources or _names(content.get("from", []), '"from"'), rules, _names(content.get("otherwise", []), '"otherwise"')
    )


def _rule(content: Any, number: int) -> Rule:
    what = f"Rule {number}"
    _check_object(content, what, {"name", "when", "to", "stop"})
    name = content.get("name", str(number))
    stops = content.get("stop", False)
    if not isinstance(name, str) or not isinstance(stops, bool):
        raise ConfigError(f'{what}: "name" is not a text, or "stop" neither true nor false')
    targets = _names(content.get("to", []), f'"to" of rule {name}')
    conditions = tuple(parse_condition(each) for each in _names(content.get("when", []), f'"when" of rule {name}'))
    return Rule(name, conditions, targets, stops)


def _check_object(content: Any, what: str, known: set[str]) -> None:
    if not isinstance(content, Mapping):
        raise ConfigError(f"{what} are not an object of JSON")
    unknown = sorted(set(content) - known)
    if unknown:
        raise ConfigError(f"{what}: {unknown[0]!r} is unknown; {', '.join(sorted(known))} are accepted")


def _names(content: Any, what: str) -> tuple[str, ...]:
    if isinstance(content, str):
        return (content,)
    if not isinstance(content, list) or not all(isinstance(each, str) and each for each in content):
        raise ConfigError(f"{what} is neither a text nor a list of texts")
    return tuple(content)
