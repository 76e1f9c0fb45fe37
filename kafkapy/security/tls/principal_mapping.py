"""`ssl.principal.mapping.rules`: from the distinguished name of a client's certificate to the name of its principal.

    rules  = rule, rule, ...        rule = DEFAULT | RULE:pattern/replacement/[L|U]

A backslash escapes `/`. A comma inside a rule needs no escape. The first rule whose pattern matches the whole name is
applied.
"""

from __future__ import annotations

import re

from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

MAPPING_KEY = "ssl.principal.mapping.rules"
_PART = r"(?:\\.|[^\\/])*"
_RULE = re.compile(rf"\s*(?:(DEFAULT)|RULE:({_PART})/({_PART})/([LU]?))\s*(?:,|$)", re.DOTALL)
_EMPTY = re.compile(r"\s*(?:,|$)")
_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")
_NAMED_BACK_REFERENCE = re.compile(r"\\k<(\w+)>")


class NoMatchingRuleError(ValueError):
    """A distinguished name to which no rule applies. The connection has no principal and is closed."""


class _Rule(NamedTuple):
    """One rule of ssl.principal.mapping.rules. `pattern` is None for the rule DEFAULT, which returns the name
    unchanged.

    An element of `replacement` is a literal text (str), the number of a group of the pattern (int), or the name of a
    group (a tuple of one element).
    """

    pattern: re.Pattern[str] | None
    replacement: tuple[str | int | tuple[str], ...]
    case: str  # L, U, or empty

    def apply(self, name: str) -> str | None:
        """Returns the name of the principal, or None if the rule does not apply."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(self._replaced, name)
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result

    def _replaced(self, match: re.Match[str]) -> str:
        parts: list[str] = []
        for part in self.replacement:
            if isinstance(part, str):
                parts.append(part)
            else:
                parts.append(match[part if isinstance(part, int) else part[0]] or "")
        return "".join(parts)


class PrincipalMapping:
    """The rules of a listener that map the distinguished names of certificates to principals. The object does not
    change after its construction.
    """

    def __init__(self, text: str, key: str = MAPPING_KEY) -> None:
        """Parses the rules. Raises ConfigError, which names `key` and the rule."""
        self._text = text
        self._rules = tuple(_parse(text, key))

    def principal_name(self, distinguished_name: str) -> str:
        """Returns the name of the principal. Raises NoMatchingRuleError."""
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoMatchingRuleError(f"No rules apply to {distinguished_name}, rules [{self._text}]")


def _parse(text: str, key: str) -> list[_Rule]:
    rules: list[_Rule] = []
    position = 0
    while position < len(text):
        empty = _EMPTY.match(text, position)
        if empty is not None and empty.end() > position:
            position = empty.end()
            continue
        match = _RULE.match(text, position)
        if match is None:
            raise ConfigError(
                f"Invalid value {text} for configuration {key}: Invalid rule: {text[position:].strip()}; a rule is "
                "DEFAULT or RULE:pattern/replacement/ followed by nothing, L or U"
            )
        rules.append(_rule(match, text, key))
        position = match.end()
    return rules


def _rule(match: re.Match[str], text: str, key: str) -> _Rule:
    if match[1]:
        return _Rule(None, (), "")
    try:
        pattern = re.compile(_NAMED_BACK_REFERENCE.sub(r"(?P=\1)", _NAMED_GROUP.sub("(?P<", match[2])))
        return _Rule(pattern, tuple(_replacement(match[3], pattern)), match[4])
    except (re.error, IndexError) as error:
        raise ConfigError(
            f"Invalid value {text} for configuration {key}: the rule RULE:{match[2]}/{match[3]}/ is invalid: {error}"
        ) from None


def _replacement(text: str, pattern: re.Pattern[str]) -> list[str | int | tuple[str]]:
    """Returns the parts of a replacement in Java's notation: an int for a group number (`$1`), a tuple with the name
    for a group name (`${name}`), and literal texts. A character after `\\` is literal.

    As in Kafka, `$` and digits are literal if there is no group with the number of the first digit. A further digit
    belongs to the number only if there is a group with the longer number. Raises IndexError for a name of a group that
    does not exist.
    """
    parts: list[str | int | tuple[str]] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            parts.append(text[position])
            position += 1
        elif character == "$" and text[position : position + 1] == "{":
            end = text.find("}", position)
            name = text[position + 1 : end]
            if end < 0 or name not in pattern.groupindex:
                raise IndexError(f"there is no group {name}")
            parts.append((name,))
            position = end + 1
        elif character == "$" and text[position : position + 1].isdigit():
            number = int(text[position])
            end = position + 1
            while text[end : end + 1].isdigit() and int(text[position : end + 1]) <= pattern.groups:
                end += 1
                number = int(text[position:end])
            if number > pattern.groups:
                parts.append("$")
                continue
            parts.append(number)
            position = end
        else:
            parts.append(character)
    return parts
