"""A file of users accepts the right passwords, and is refused if it is damaged."""

from __future__ import annotations

import pytest

from kafkapy.errors import ConfigError
from kafkapy.http.passwords import PasswordFile, hash_password


def test_a_password_is_accepted_by_its_hash_only():
    found = hash_password("correct horse")
    assert found.accepts("correct horse")
    assert not found.accepts("correct horse ")
    assert str(hash_password("correct horse")) != str(found)


def test_a_file_has_users(tmp_path):
    path = tmp_path / "users"
    path.write_text(f"# people\nada:{hash_password('secret')}\n\nbob:{hash_password('other')}\n")
    users = PasswordFile(path)
    assert users.accepts("ada", "secret")
    assert not users.accepts("ada", "other")
    assert not users.accepts("eve", "secret")


@pytest.mark.parametrize(
    "line",
    [
        "ada:secret",
        "ada:scrypt$3$8$1$AAAA$AAAA",
        "ada:scrypt$16384$8$5$AAAA$AAAA",
        "ada:scrypt$1073741824$8$5$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "",
    ],
)
def test_a_damaged_file_is_refused(tmp_path, line):
    path = tmp_path / "users"
    path.write_text(f"{line}\n")
    with pytest.raises(ConfigError, match=r"line 1|has no user"):
        PasswordFile(path)
