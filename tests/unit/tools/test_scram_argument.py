"""The credentials of kafka-storage's --add-scram."""

from __future__ import annotations

import base64
import hashlib

import pytest

from kafkapy.client.admin import ScramMechanism
from kafkapy.tools.option import ToolError
from kafkapy.tools.scram_argument import parse_scram


def test_a_password_is_salted() -> None:
    salt = base64.b64encode(b"salt").decode()
    found = parse_scram(f'SCRAM-SHA-512=[name="a b",password=pass=word,salt={salt},iterations=8192]')
    salted = hashlib.pbkdf2_hmac("sha512", b"pass=word", b"salt", 8192)
    assert found == ("a b", ScramMechanism.SCRAM_SHA_512, 8192, b"salt", salted)


def test_a_salt_is_generated_for_each_credential() -> None:
    first, second = (parse_scram("SCRAM-SHA-256=[name=a,password=x]") for _ in range(2))
    assert first.iterations == 4096
    assert len(first.salt) >= 16 and first.salt != second.salt


def test_a_salted_password_is_not_changed() -> None:
    assert parse_scram("SCRAM-SHA-256=[name=a,salt=eA==,saltedpassword=eXk=]")[3:] == (b"x", b"yy")


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ("name=a]", "start with"),
        ("[name=a", "end with"),
        ("[name]", "No equals sign found in SCRAM component: name"),
        ("[name=a]", "one of 'password' or 'saltedpassword'"),
        ("[name=a,saltedpassword=eA==]", "supply 'salt'"),
        ("[name=a,password=x,iterations=4095]", ">= 4096"),
        ("[name=a,password=x,b=1,a=2]", "Unknown SCRAM configurations: a, b"),
        ("[name=a,password=x,salt=*]", r"given salt: \*"),
    ],
)
def test_invalid_credentials_are_refused(config: str, what: str) -> None:
    with pytest.raises(ToolError, match=what):
        parse_scram(f"SCRAM-SHA-256={config}")
