"""The words of the shell for ZooKeeper: lines, flags, connect strings and paths."""

from __future__ import annotations

import pytest

from kafkapy.tools.zookeeper.command_words import CommandError, Flags, parse_words, split
from kafkapy.tools.zookeeper.connect_string import check_path, parse_connect_string
from kafkapy.tools.zookeeper.shell import main


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("get /a", ["get", "/a"]),
        ("create '/a b' \"c  d\" x", ["create", "/a b", "c  d", "x"]),
        ('  set /a {"b":1}  ', ["set", "/a", '{"b":1}']),
        ("set /a ''", ["set", "/a", ""]),
        ("   ", []),
    ],
)
def test_quotes_keep_blanks_together(line, words):
    assert split(line) == words


def test_flags_may_be_anywhere_and_joined():
    flags = Flags("sR", "v")
    assert parse_words(["/a", "-sR", "-v", "-1", "b"], flags) == ({"s": "", "R": "", "v": "-1"}, ["/a", "b"])
    assert parse_words(["-v3", "--", "-s"], flags) == ({"v": "3"}, ["-s"])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["-x"], "UnrecognizedOptionException: Unrecognized option: -x"),
        (["-v"], "MissingArgumentException: Missing argument for option: v"),
        (["-v", "-s"], "MissingArgumentException: Missing argument for option: v"),
        (["-a", "-b"], "The option 'b' was specified but an option from this group has already been selected: 'a'"),
    ],
)
def test_wrong_flags_have_the_errors_of_zookeepers_shell(words, error):
    with pytest.raises(CommandError) as caught:
        parse_words(words, Flags("sab", "v", group="ab"))
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("a", (("a", 2181),), ""),
        ("a:1,b:2/kafka/x", (("a", 1), ("b", 2)), "/kafka/x"),
        ("[::1]:5/", (("::1", 5),), ""),
        ("[::1]", (("::1", 2181),), ""),
    ],
)
def test_a_connect_string_has_servers_and_a_chroot(text, servers, chroot):
    assert parse_connect_string(text) == (servers, chroot)


@pytest.mark.parametrize("text", ["", "/kafka", "a:x", ":1", "a:70000", "a:1//x", "a/b/"])
def test_a_wrong_connect_string_is_refused(text):
    with pytest.raises(ValueError, match=r"server|host:port|[Pp]ath"):
        parse_connect_string(text)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("", "Path length must be > 0"),
        ("a", "Path must start with / character"),
        ("/a/", "Path must not end with / character"),
        ("/a//b", 'Invalid path string "/a//b" caused by empty node name specified @3'),
        ("/a/../b", 'Invalid path string "/a/../b" caused by relative paths not allowed @4'),
        ("/a\x00", "null character not allowed @2"),
        ("/a\x07", "invalid character @2"),
    ],
)
def test_a_wrong_path_is_refused_with_zookeepers_text(path, error):
    with pytest.raises(ValueError, match=r".") as caught:
        check_path(path)
    assert error in str(caught.value)


def test_a_wrong_address_and_a_wrong_flag_are_one_line(capsys):
    assert main(["localhost:x", "ls", "/"]) == 1
    assert "'localhost:x' in 'localhost:x' is not host:port" in capsys.readouterr().err
    assert main(["--wrong", "localhost:1"]) == 1
    assert "wrong is not a recognized option" in capsys.readouterr().err
