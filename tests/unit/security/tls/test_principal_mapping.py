"""Principal names from distinguished names: the rules of `ssl.principal.mapping.rules`."""

import pytest

from kafkapy.errors import ConfigError
from kafkapy.security.tls.principal_mapping import NoMatchingRuleError, PrincipalMapping

ALICE = "CN=alice,OU=clients,O=Test"


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("DEFAULT", ALICE, ALICE),
        ("", ALICE, None),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=Test", "kafka"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", ALICE, None),
        ("RULE:^CN=([^,]*),.*$/$1/U", ALICE, "ALICE"),
        ("RULE:^CN=([^,]*),.*$/$1@Realm/L", "CN=Alice,O=T", "alice@realm"),
        ("RULE:^CN=bob,.*$/bob/,DEFAULT", ALICE, ALICE),
        ("RULE:^CN=bob,.*$/bob/ , RULE:^CN=(.*?),.*$/$1/", ALICE, "alice"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2\\/$3/", ALICE, "alice@clients/Test"),
        ("RULE:^CN=(?<user>.*?),.*$/${user}/", ALICE, "alice"),
        # a group that does not exist is a literal text, and further digits count only for existing groups
        ("RULE:^CN=(.*?),.*$/$1$2/", ALICE, "alice$2"),
        ("RULE:^CN=(.*?),.*$/$12/", ALICE, "alice2"),
        ("RULE:^CN=(.*?),.*$/\\$1/", ALICE, "$1"),
        ("RULE:.*CN=(.*?),.*/$1/", "CN=a/b,O=T", "a/b"),
        ("RULE:^CN=a\\/b,.*$/slash/", "CN=a/b,O=T", "slash"),
        ("RULE:^CN=(alice), *OU.*$/$1/,DEFAULT,", ALICE, "alice"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_applies(rules, name, expected):
    mapping = PrincipalMapping(rules)
    if expected is None:
        with pytest.raises(NoMatchingRuleError, match="No rules apply to "):
            mapping.principal_name(name)
    else:
        assert mapping.principal_name(name) == expected


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAULT/L",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/X",
        "RULE:CN=/$1",
        "RULE:^CN=(.*?)",
        "nothing",
        "RULE:[/x/",
        "RULE:^CN=(.*)$/${name}/",
        "DEFAULT DEFAULT",
    ],
)
def test_an_invalid_rule_is_refused_with_its_key(rules):
    with pytest.raises(ConfigError, match=r"Invalid value .* for configuration ssl.principal.mapping.rules"):
        PrincipalMapping(rules)
