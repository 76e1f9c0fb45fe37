"""The grammar of JAAS configurations: values of sasl.jaas.config, and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.errors import ConfigError
from kafkapy.security.jaas import jaas_file_of, parse_jaas_config, parse_jaas_file, read_jaas_file

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_module_with_options() -> None:
    entry = parse_jaas_config(f'{PLAIN} required username="alice" user_alice="se cret" debug=true;')
    assert (entry.module, entry.flag) == (PLAIN, "REQUIRED")
    assert entry.options == {"username": "alice", "user_alice": "se cret", "debug": "true"}


@pytest.mark.parametrize("flag", ["required", "REQUISITE", "Sufficient", "optional"])
def test_every_flag_in_any_case(flag: str) -> None:
    assert parse_jaas_config(f"m {flag};").flag == flag.upper()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('k="a\\"b"', 'a"b'),
        ("k='a b'", "a b"),
        ('k="a\\\\b\\n\\101\\7"', "a\\b\nA\7"),
        ("k=word-with_$signs.and.1digits", "word-with_$signs.and.1digits"),
        ('k /* comment */ = // another\n "v"', "v"),
        ('k="//not a comment;"', "//not a comment;"),
        ('k=""', ""),
        ('k="\u00e9\u20ac"', "\u00e9\u20ac"),
    ],
)
def test_values(text: str, value: str) -> None:
    assert parse_jaas_config(f"m required {text};").options == {"k": value}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Login module not specified in JAAS config"),
        ("m", "Login module control flag not specified in JAAS config"),
        ("m ;", "Login module control flag is not available in the JAAS config"),
        ("m needed;", "Invalid login module control flag 'needed' in JAAS config"),
        ("m required", "JAAS config entry not terminated by semi-colon"),
        ('m required k="v"', "JAAS config entry not terminated by semi-colon"),
        ("m required k=;", "Value not specified for key 'k'"),
        ("m required k=12;", "Value not specified for key 'k'"),
        ("m required k=-x;", "Value not specified for key 'k'"),
        ("m required k;", "after REQUIRED"),
        ("m required; n optional;", "JAAS config property contains 2 login modules, should be 1 module"),
        ("com.sun.security.auth.module.JndiLoginModule required;", "is not allowed"),
        ("com.sun.security.auth.module.LdapLoginModule required;", "is not allowed"),
        ("{ required;", "Login module not specified"),
    ],
)
def test_a_malformed_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_jaas_config(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text", ["m required password=se@cret;", "m required password=s secret;", "m required password=1secret;"]
)
def test_the_message_about_a_malformed_text_contains_no_part_of_a_password(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_jaas_config(text)
    assert "cret" not in str(caught.value)


def test_the_representation_hides_the_options() -> None:
    shown = repr(parse_jaas_config('m required user_alice="secret";'))
    assert "secret" not in shown
    assert "user_alice" in shown


FILE = """
/* of the broker */
KafkaServer {
    org.apache.kafka.common.security.plain.PlainLoginModule required
        user_alice="alice-secret"; // alice
    org.apache.kafka.common.security.scram.ScramLoginModule required
        username="admin" password="admin-secret";
};
sasl.KafkaServer { m optional; };
KafkaClient { };
"""


def test_a_file_has_contexts_with_several_modules() -> None:
    contexts = parse_jaas_file(FILE)
    assert list(contexts) == ["KafkaServer", "sasl.KafkaServer", "KafkaClient"]
    assert [entry.module.rpartition(".")[2] for entry in contexts["KafkaServer"]] == [
        "PlainLoginModule",
        "ScramLoginModule",
    ]
    assert contexts["KafkaServer"][1].options == {"username": "admin", "password": "admin-secret"}
    assert contexts["KafkaClient"] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("KafkaServer m required;", "{ is missing"),
        ("KafkaServer { m required;", "not terminated"),
        ("KafkaServer { m required; }", "; is missing"),
        ("KafkaServer { }; KafkaServer { };", "twice"),
        ("KafkaServer { m required };", "after REQUIRED"),
    ],
)
def test_a_malformed_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_jaas_file(text)
    assert message in str(caught.value)


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    with pytest.raises(ConfigError, match=r"jaas\.conf"):
        read_jaas_file(str(path))
    path.write_text("KafkaServer {")
    with pytest.raises(ConfigError, match=r"jaas\.conf"):
        read_jaas_file(str(path))


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ("", None),
        ("-Xmx1G", None),
        ("-Xmx1G -Djava.security.auth.login.config=/etc/jaas.conf", "/etc/jaas.conf"),
        ("'-Djava.security.auth.login.config=/etc/my jaas.conf'", "/etc/my jaas.conf"),
        ("'", None),
    ],
)
def test_the_file_is_named_as_it_is_for_java(options: str, path: str | None) -> None:
    assert jaas_file_of({"KAFKA_OPTS": options}) == path
