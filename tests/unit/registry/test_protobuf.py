"""The compatibility of Protobuf schemas, as `.proto` texts and as descriptors in base64."""

from __future__ import annotations

import base64

import pytest

from kafkapy.client.schema.proto_text import significant_text
from kafkapy.registry.errors import InvalidSchema
from kafkapy.registry.schemas import proto_compiler
from kafkapy.registry.schemas.protobuf import ProtobufSchema, differences

HEAD = 'syntax = "proto3";\npackage shop;\n'
ORDER = HEAD + "message Order { string name = 1; int32 count = 2; Item item = 3; message Item { int64 id = 1; } }"


def schema(text: str, referred: dict[str, str] | None = None, *, is_text: bool = True) -> ProtobufSchema:
    """Returns the schema of a text, or of the descriptor of that text in base64."""
    if is_text:
        return ProtobufSchema(text, referred, is_new=True)
    files = proto_compiler.compiled(text, referred or {}).file
    named = {name: encoded(file) for name, file in zip(referred or {}, files[:-1], strict=True)}
    return ProtobufSchema(encoded(files[-1]), named, is_new=True)


def encoded(file) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def kinds(reader: ProtobufSchema, writer: ProtobufSchema) -> list[str]:
    return [each.kind for each in differences(reader, writer)]


FIELDS = "message M { %s }"
ONEOF = "message M { oneof o { %s } %s }"


@pytest.mark.parametrize("is_text", [True, False], ids=["texts", "descriptors"])
@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        (FIELDS % "int32 a = 1;", FIELDS % "int32 a = 1; string b = 2;", []),
        (FIELDS % "int32 a = 1; string b = 2;", FIELDS % "int32 a = 1;", []),
        (FIELDS % "int32 a = 1;", FIELDS % "int32 other = 1;", []),
        (FIELDS % "int32 a = 1;", FIELDS % "uint64 a = 1;", []),
        (FIELDS % "int32 a = 1;", FIELDS % "E a = 1; enum E { X = 0; }", []),
        (FIELDS % "string a = 1;", FIELDS % "bytes a = 1;", []),
        (FIELDS % "string a = 1;", FIELDS % "repeated string a = 1;", []),
        (FIELDS % "int32 a = 1;", FIELDS % "string a = 1;", ["FIELD_SCALAR_KIND_CHANGED"]),
        (FIELDS % "int32 a = 1;", FIELDS % "sint32 a = 1;", ["FIELD_SCALAR_KIND_CHANGED"]),
        (FIELDS % "int32 a = 1;", FIELDS % "repeated int32 a = 1;", ["FIELD_NUMERIC_LABEL_CHANGED"]),
        (FIELDS % "int32 a = 1;", FIELDS % "M a = 1;", ["FIELD_KIND_CHANGED"]),
        (FIELDS % "N a = 1; message N {}", FIELDS % "M a = 1; message N {}", ["FIELD_NAMED_TYPE_CHANGED"]),
        (FIELDS % "message N {}", FIELDS % "", ["MESSAGE_REMOVED"]),
        (FIELDS % "", FIELDS % "message N {}", []),
        (FIELDS % "map<string, int32> a = 1;", FIELDS % "map<string, string> a = 1;", ["FIELD_SCALAR_KIND_CHANGED"]),
        (FIELDS % "int32 a = 1;", FIELDS % "optional int32 a = 1;", []),
        (FIELDS % "int32 a = 1;", ONEOF % ("int32 a = 1;", ""), []),
        (FIELDS % "int32 a = 1; int32 b = 2;", ONEOF % ("int32 a = 1; int32 b = 2;", ""),
         ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"]),
        (ONEOF % ("int32 a = 1;", "int32 b = 2;"), ONEOF % ("int32 a = 1; int32 b = 2;", ""),
         ["FIELD_MOVED_TO_EXISTING_ONEOF"]),
        (ONEOF % ("int32 a = 1; int32 b = 2;", ""), ONEOF % ("int32 a = 1;", ""), ["ONEOF_FIELD_REMOVED"]),
        (ONEOF % ("int32 a = 1; int32 b = 2;", ""), ONEOF % ("int32 a = 1;", "int32 b = 2;"), ["ONEOF_FIELD_REMOVED"]),
        (ONEOF % ("int32 a = 1;", ""), ONEOF % ("int32 a = 1; int32 b = 2;", ""), []),
        (ONEOF % ("int32 a = 1;", ""), FIELDS % "int32 a = 1;", []),
    ],
)  # fmt: skip
def test_the_rules_of_confluents_registry_apply(writer, reader, expected, is_text):
    assert kinds(schema(HEAD + reader, is_text=is_text), schema(HEAD + writer, is_text=is_text)) == expected


def test_required_fields_of_proto2_stay():
    plain, more = (
        f'syntax = "proto2"; message M {{ required int32 a = 1; {each} }}' for each in ("", "required int32 b = 2;")
    )
    assert kinds(schema(more), schema(plain)) == ["REQUIRED_FIELD_ADDED"]
    assert kinds(schema(plain), schema(more)) == ["REQUIRED_FIELD_REMOVED"]


def test_the_package_stays():
    other = ORDER.replace("package shop", "package store")
    assert kinds(schema(other), schema(ORDER)) == ["PACKAGE_CHANGED"]


def test_a_text_can_be_compared_with_a_descriptor():
    changed = ORDER.replace("int32 count", "string count")
    assert kinds(schema(ORDER, is_text=False), schema(ORDER)) == []
    assert kinds(schema(changed), schema(ORDER, is_text=False)) == ["FIELD_SCALAR_KIND_CHANGED"]


USER = HEAD + 'import "%s"; message User { Place place = 1; }'
PLACE = HEAD + "message Place { %s city = 1; Place within = 2; }"


@pytest.mark.parametrize("is_text", [True, False], ids=["texts", "descriptors"])
def test_an_imported_message_is_compared_too(is_text):
    text, number = ({"place.proto": PLACE % kind} for kind in ("string", "int32"))
    user = USER % "place.proto"
    old, same = (schema(user, text, is_text=is_text) for _ in range(2))
    assert kinds(same, old) == []
    assert kinds(schema(user, number, is_text=is_text), old) == ["FIELD_SCALAR_KIND_CHANGED"]
    moved = {"moved.proto": PLACE % "string"}
    assert kinds(schema(USER % "moved.proto", moved, is_text=is_text), old) == []


def test_googles_common_types_need_no_reference():
    text = HEAD + 'import "google/type/money.proto"; import "google/protobuf/duration.proto";'
    text += "message M { google.type.Money price = 1; google.protobuf.Duration age = 2; }"
    assert kinds(schema(text), schema(text.replace("price", "cost"))) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEAD + "message M { Missing a = 1; }", '"Missing" is not defined'),
        (HEAD + "message M { int32 a = 1; int32 b = 1; }", "Field number 1 has already been used"),
        (HEAD + "message M {", "Reached end of input"),
        (HEAD + 'import "missing.proto"; message M {}', "missing.proto: File not found"),
        ('import "../../etc/hostname"; message M {}', "not allowed in the virtual path"),
        ("message " + "M { message " * 5000, "."),
        ("what?", "neither"),
        ("what; ever", "no word"),
    ],
)
def test_a_text_that_cannot_be_compiled_is_refused_with_the_reason(text, reason):
    with pytest.raises(InvalidSchema, match=reason):
        ProtobufSchema(text, is_new=True)


@pytest.mark.parametrize("name", ["../outside.proto", "/etc/outside.proto", "", "a\0b", "x" * 300])
def test_a_reference_is_written_nowhere_else(name):
    with pytest.raises(InvalidSchema, match="of a reference"):
        ProtobufSchema(ORDER, {name: HEAD}, is_new=True)


def test_without_the_compiler_texts_are_stored_and_not_compared(monkeypatch):
    monkeypatch.setattr(proto_compiler, "can_compile", lambda: False)
    old, new = ProtobufSchema(ORDER, is_new=True), ProtobufSchema(ORDER.replace("count", "number"), is_new=True)
    assert ProtobufSchema(HEAD + "message M { Missing a = 1; }", is_new=True).canonical
    with pytest.raises(InvalidSchema, match=r"kafkapy\[proto\]"):
        differences(new, old)
    assert differences(old, ProtobufSchema(f"// a comment\n{ORDER}")) == []


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("message  M{int32 a=1;}", "message M {\n  int32 a = 1; // first\n}\n"),
        ("message M { /* a * b **/ }", "message M{}"),
        ('option a = "x // y";', 'option\ta="x // y" ;'),
        ("option a = 'it\\'s /* no comment */';", "option a='it\\'s /* no comment */';"),
    ],
)
def test_comments_and_white_space_are_not_significant(text, same):
    assert significant_text(text) == significant_text(same)


@pytest.mark.parametrize(("text", "other"), [('a = "x y";', 'a = "x  y";'), ("ab;", "a b;"), ('a = "//";', 'a = "";')])
def test_everything_else_is_significant(text, other):
    assert significant_text(text) != significant_text(other)


@pytest.mark.parametrize("part", ["/*", '"', "'", "//", "\\", "/* *", '"\\'])
def test_an_unfinished_text_takes_linear_time(part):
    assert len(significant_text("a;" + part * 500_000)) <= 3 * 500_000 * len(part)


def test_base64_is_taken_as_it_is():
    assert significant_text(" CgR//*abc/+= ") == "CgR//*abc/+="
