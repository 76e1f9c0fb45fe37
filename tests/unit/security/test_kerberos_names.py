"""Short names of Kerberos principals; the cases are those of Kafka's documentation and of its own tests."""

from __future__ import annotations

import pytest

from kafkapy.errors import ConfigError
from kafkapy.security.kerberos_names import NoShortName, ShortNames

REALM = "REALM.COM"


@pytest.mark.parametrize(
    ("rules", "name", "short"),
    [
        (["DEFAULT"], "user@REALM.COM", "user"),
        (["DEFAULT"], "kafka/host@REALM.COM", "kafka"),
        (["DEFAULT"], "simple", "simple"),
        (["RULE:[1:$1](App\\..*)s/App\\.(.*)/$1/g", "DEFAULT"], "App.service-name@REALM.COM", "service-name"),
        (["RULE:[2:$1]", "DEFAULT"], "admin/host@OTHER.COM", "admin"),
        (["RULE:[2:$1@$0](.*@OTHER.COM)s/@.*//"], "admin/host@OTHER.COM", "admin"),
        (["RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//", "DEFAULT"], "user@REALM.COM", "user"),
        (["RULE:[1:$1]/L"], "User@REALM.COM", "user"),
        (["RULE:[1:$1]/U"], "User@REALM.COM", "USER"),
        (["RULE:[2:$2]/L"], "kafka/HOST@REALM.COM", "host"),
        (["RULE:[1:$1]s/a/b/g"], "banana@REALM.COM", "bbnbnb"),
        (["RULE:[1:$1]s/a/b/"], "banana@REALM.COM", "bbnana"),
        (["RULE:[2:$1.$2]"], "kafka/host@REALM.COM", "kafka.host"),
        (["RULE:[2:$1](guest)s/guest/bob/", "RULE:[2:$1]"], "guest/host@REALM.COM", "bob"),
    ],
)
def test_the_first_rule_that_applies(rules: list[str], name: str, short: str) -> None:
    assert ShortNames(rules, REALM).short_name(name) == short


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        (["DEFAULT"], "user@OTHER.COM"),
        (["RULE:[2:$1]"], "user@REALM.COM"),
        (["RULE:[1:$1@$0]"], "user@REALM.COM"),
        (["DEFAULT"], "a/b/c@REALM.COM"),
        ([], "user@REALM.COM"),
    ],
)
def test_a_principal_without_a_short_name(rules: list[str], name: str) -> None:
    with pytest.raises(NoShortName):
        ShortNames(rules, REALM).short_name(name)


@pytest.mark.parametrize(
    "rule", ["default", "RULE:", "RULE:[1:$1", "RULE:[x:$1]", "RULE:[1:$1](", "RULE:[1:$1](*)", ""]
)
def test_a_malformed_rule_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.kerberos\.principal\.to\.local\.rules"):
        ShortNames([rule], REALM)
