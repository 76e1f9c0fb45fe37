"""`.properties` texts as java.util.Properties reads them."""

import pytest

from kafkapy.config.properties import parse_properties, read_properties
from kafkapy.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a = b", {"a": "b"}),
        ("  a\t:\t b c ", {"a": "b c "}),
        ("a", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("a = :b", {"a": ":b"}),
        ("# x=y\n! x=y\n  # x=y\n\na=b", {"a": "b"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b,\\\n    c,\\\n\td", {"a": "b,c,d"}),
        ("a=b\\\n#c", {"a": "b#c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a=\\t\\n\\r\\f\\q", {"a": "\t\n\r\fq"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=b#c!d", {"a": "b#c!d"}),
        ("a=b\\", {"a": "b"}),
        ("=b", {"": "b"}),
        ("", {}),
    ],
)
def test_texts_are_read_as_java_reads_them(text, properties):
    assert parse_properties(text) == properties


def test_malformed_escape_is_refused():
    with pytest.raises(ConfigError, match="uxxxx"):
        parse_properties("a=\\u12")


def test_files_are_latin_1(tmp_path):
    path = tmp_path / "server.properties"
    path.write_bytes(b"a=\xe9\n")
    assert read_properties(str(path)) == {"a": "é"}


def test_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"no\.properties: No such file"):
        read_properties(str(tmp_path / "no.properties"))
