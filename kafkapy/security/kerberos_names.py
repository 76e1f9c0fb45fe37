"""Short names of Kerberos principals, by the rules of `sasl.kerberos.principal.to.local.rules`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from kafkapy.errors import ConfigError

_NAME = re.compile(r"(?P<service>[^/@]*)(?:/(?P<host>[^/@]*))?(?:@(?P<realm>[^/@]*))?")
_RULE = re.compile(
    r"(?P<default>DEFAULT)|RULE:\[(?P<components>\d*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<repeat>g)?)?/?(?P<case>[LU])?"
)
_PARAMETER = re.compile(r"\$(\d*)")
_GROUP = re.compile(r"\\(.)|\$(\d+)")
_NOT_SIMPLE = re.compile("[/@]")


class NoShortName(Exception):
    """No rule applies to a principal, or a rule makes a name that contains `/` or `@`."""


class _Rule(NamedTuple):
    text: str
    is_default: bool
    components: int
    format: str
    match: re.Pattern[str] | None
    pattern: re.Pattern[str] | None
    replacement: str
    repeats: bool
    case: str | None


class ShortNames:
    """The rules of a listener that map Kerberos principals to short names. The object does not change, so that any
    thread may use it.
    """

    def __init__(self, texts: Sequence[str], default_realm: str | None) -> None:
        """Parses the rules, in the order in which they are tried. Raises ConfigError for a malformed rule.

        The rule DEFAULT applies to the principals of `default_realm` only.
        """
        self._rules = [_parse(text) for text in texts]
        self._default_realm = default_realm

    def short_name(self, name: str) -> str:
        """Returns the short name of a principal, such as alice for alice/admin@EXAMPLE.COM.

        Raises NoShortName if `name` is malformed, if no rule applies, or if the rule makes a name with `/` or `@`.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            raise NoShortName(f"{name} is not the name of a Kerberos principal")
        service, host, realm = match["service"], match["host"], match["realm"]
        if host is None and realm is None:
            return service
        parts = [realm or "", service] if host is None else [realm or "", service, host]
        for rule in self._rules:
            found = self._apply(rule, parts)
            if found is not None:
                return found
        raise NoShortName(f"no rule of sasl.kerberos.principal.to.local.rules applies to {name}")

    def _apply(self, rule: _Rule, parts: Sequence[str]) -> str | None:
        found: str | None = None
        if rule.is_default:
            found = parts[1] if parts[0] == self._default_realm else None
        elif rule.components == len(parts) - 1:
            base = _PARAMETER.sub(lambda match: parts[int(match[1] or 0)] if int(match[1] or 0) < len(parts) else "",
                                  rule.format)  # fmt: skip
            if rule.match is None or rule.match.fullmatch(base):
                found = base if rule.pattern is None else _replace(rule, base)
        if found is not None and _NOT_SIMPLE.search(found):
            raise NoShortName(f"the rule {rule.text} makes {found}, which contains / or @")
        if found is not None and rule.case is not None:
            return found.lower() if rule.case == "L" else found.upper()
        return found


def _replace(rule: _Rule, base: str) -> str:
    assert rule.pattern is not None

    def replacement(match: re.Match[str]) -> str:
        return _GROUP.sub(lambda part: part[1] or match[int(part[2])] or "", rule.replacement)

    return rule.pattern.sub(replacement, base, count=0 if rule.repeats else 1)


def _parse(text: str) -> _Rule:
    problem = f"Invalid value {text} for configuration sasl.kerberos.principal.to.local.rules"
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{problem}: accepted are DEFAULT and RULE:[n:format](regexp)s/pattern/replacement/g/L")
    try:
        return _Rule(
            text.strip(),
            match["default"] is not None,
            int(match["components"] or -1),
            match["format"] or "",
            re.compile(match["match"]) if match["match"] is not None else None,
            re.compile(match["pattern"]) if match["pattern"] is not None else None,
            match["replacement"] or "",
            match["repeat"] is not None,
            match["case"],
        )
    except re.error as error:
        raise ConfigError(f"{problem}: {error}") from error
