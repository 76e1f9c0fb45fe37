"""Principal names from distinguished names: the rules of `ssl.principal.mapping.rules`."""

import json
import subprocess

import pytest

from kafkapy.errors import ConfigError
from kafkapy.security.tls.principal_mapping import NoMatchingRuleError, PrincipalMapping
from tests.peers import kafka_directory

ALICE = "CN=alice,OU=clients,O=Test"


APPLIED = [
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
]


@pytest.mark.parametrize(("rules", "name", "expected"), APPLIED)
def test_the_first_rule_that_matches_the_whole_name_applies(rules, name, expected):
    mapping = PrincipalMapping(rules)
    if expected is None:
        with pytest.raises(NoMatchingRuleError, match="No rules apply to "):
            mapping.principal_name(name)
    else:
        assert mapping.principal_name(name) == expected


# Apache Kafka notices these at the first client only.
OURS = ("RULE:^CN=(.*)$/${name}/",)
REFUSED = [
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
]


@pytest.mark.parametrize("rules", REFUSED)
def test_an_invalid_rule_is_refused_with_its_key(rules):
    with pytest.raises(ConfigError, match=r"Invalid value .* for configuration ssl.principal.mapping.rules"):
        PrincipalMapping(rules)


PROGRAM = """
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;
void show(String rules, String name) {
    try { System.out.println("=" + SslPrincipalMapper.fromRules(rules).getName(name)); }
    catch (IllegalArgumentException refused) { System.out.println("!"); }
    catch (java.io.IOException none) { System.out.println("-"); }
}
"""


@pytest.mark.peer
def test_apache_kafka_gives_the_same_names():
    cases = [(rules, name) for rules, name, _ in APPLIED] + [(rules, ALICE) for rules in REFUSED if rules not in OURS]
    calls = "".join(f"show({json.dumps(rules)}, {json.dumps(name)});\n" for rules, name in cases)
    class_path = ":".join(map(str, (kafka_directory("4.3.0") / "libs").glob("*.jar")))
    done = subprocess.run(
        ["jshell", "-s", "--class-path", class_path, "-"], input=f"{PROGRAM}{calls}/exit\n", capture_output=True,
        text=True, check=True, timeout=100,
    )  # fmt: skip
    shown = [line for line in done.stdout.splitlines() if line[:1] in ("=", "!", "-")]
    assert dict(zip(cases, shown, strict=True)) == {case: ours(*case) for case in cases}


def ours(rules, name):
    try:
        return f"={PrincipalMapping(rules).principal_name(name)}"
    except NoMatchingRuleError:
        return "-"
    except ConfigError:
        return "!"
