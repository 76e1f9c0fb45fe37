"""`.proto` texts in the registry: their ids, their compatibility, their references."""

from __future__ import annotations

import pytest

PLACE = 'syntax = "proto3";\npackage a1;\nmessage Place {\n  string city = 1;\n  int32 zone = 2;\n}\n'
CUSTOMER = 'syntax = "proto3";\npackage a1;\nimport "place.proto";\nmessage Customer {\n  Place place = 1;\n}\n'


def proto(text: str, *references: tuple[str, str, int]) -> dict:
    named = [{"name": name, "subject": subject, "version": version} for name, subject, version in references]
    return {"schemaType": "PROTOBUF", "schema": text, "references": named}


def test_comments_and_white_space_make_no_new_version(registry):
    path = "/subjects/places/versions"
    schema_id = registry.request("POST", path, proto(PLACE))[1]["id"]
    other = "// where customers live\n" + PLACE.replace("\n", " \n\t")
    assert registry.request("POST", path, proto(other))[1]["id"] == schema_id
    assert registry.request("GET", path) == (200, [1])
    found = registry.request("POST", "/subjects/places", proto(other))[1]
    assert (found["id"], found["version"], found["schema"]) == (schema_id, 1, PLACE.strip())
    in_other_subject = registry.request("POST", "/subjects/more-places/versions", proto(other))[1]
    assert in_other_subject["id"] == schema_id
    assert registry.request("GET", "/subjects/more-places/versions/1")[1]["schema"] == PLACE.strip()


def test_the_level_of_the_subject_applies_to_texts(registry):
    path = "/subjects/levels/versions"
    assert registry.request("POST", path, proto(PLACE))[0] == 200
    text = PLACE.replace("int32 zone", "string zone")
    status, answer = registry.request("POST", path, proto(text))
    assert status == 409 and "FIELD_SCALAR_KIND_CHANGED" in answer["message"]
    checked = registry.request("POST", "/compatibility/subjects/levels/versions/latest", proto(text))
    assert checked == (200, {"is_compatible": False})
    assert registry.request("POST", path, proto(PLACE.replace("int32 zone", "int64 zone")))[0] == 200
    assert registry.request("PUT", "/config/levels", {"compatibility": "NONE"})[0] == 200
    assert registry.request("POST", path, proto(text))[0] == 200
    assert registry.request("GET", path) == (200, [1, 2, 3])


def test_a_changed_reference_is_found(registry):
    for subject, text in (("place-1", PLACE), ("place-2", PLACE.replace("string city", "int32 city"))):
        assert registry.request("POST", f"/subjects/{subject}/versions", proto(text))[0] == 200
    path = "/subjects/customers/versions"
    assert registry.request("POST", path, proto(CUSTOMER, ("place.proto", "place-1", 1)))[0] == 200
    status, answer = registry.request("POST", path, proto(CUSTOMER, ("place.proto", "place-2", 1)))
    assert status == 409 and "FIELD_SCALAR_KIND_CHANGED" in answer["message"]


@pytest.mark.parametrize(
    "schema",
    [proto(CUSTOMER), proto(CUSTOMER, ("place.proto", "nowhere", 1)), proto(PLACE.replace("= 2", "= 1"))],
    ids=["without its reference", "with an unknown reference", "with a number twice"],
)
def test_a_text_that_cannot_be_compiled_is_refused(registry, schema):
    status, answer = registry.request("POST", "/subjects/refused/versions", schema)
    assert (status, answer["error_code"]) == (422, 42201)
    assert registry.request("GET", "/subjects/refused/versions")[0] == 404
