"""Client quotas: only changes are written, and an invalid entity does not affect the others."""

from kafkapy.controller.client_quotas import QuotaAlteration, alter_client_quotas
from kafkapy.errors import Error
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import EMPTY_IMAGE

ANN = (("user", "ann"),)


def altered(image, entity, values, **options):
    result = alter_client_quotas(image, [QuotaAlteration(entity, values)], {"10.0.0.1"}, **options)
    delta = MetadataDelta(image)
    for message, _ in result.records:
        delta.replay(message)
    return delta.to_image(image.offset, 1), len(result.records), result.response[entity].error


def test_set_change_and_remove():
    image, written, _ = altered(EMPTY_IMAGE, ANN, {"producer_byte_rate": 5.0, "request_percentage": 1.5})
    assert (written, image.client_quotas) == (2, {ANN: {"producer_byte_rate": 5.0, "request_percentage": 1.5}})
    image, written, _ = altered(image, ANN, {"producer_byte_rate": 5.0, "request_percentage": None, "nothing": None})
    assert (written, image.client_quotas) == (1, {ANN: {"producer_byte_rate": 5.0}})
    image, written, _ = altered(image, ANN, {"producer_byte_rate": None})
    assert image.client_quotas == {}


def test_validation_writes_nothing():
    _, written, error = altered(EMPTY_IMAGE, ANN, {"producer_byte_rate": 5.0}, validate_only=True)
    assert (written, error) == (0, 0)


def test_invalid_entities_and_keys_are_refused():
    for entity, values in (
        ((), {"producer_byte_rate": 1.0}),
        ((("planet", "x"),), {"producer_byte_rate": 1.0}),
        ((("user", ""),), {"producer_byte_rate": 1.0}),
        ((("ip", "10.0.0.1"), ("user", "a")), {"connection_creation_rate": 1.0}),
        ((("ip", "nowhere"),), {"connection_creation_rate": 1.0}),
        ((("ip", "10.0.0.1"),), {"producer_byte_rate": 1.0}),
        (ANN, {"nothing": 1.0}),
        (ANN, {"producer_byte_rate": 0.0}),
        (ANN, {"producer_byte_rate": float("nan")}),
        (ANN, {"producer_byte_rate": float("inf")}),
        (ANN, {"producer_byte_rate": 1.5}),
    ):
        _, written, error = altered(EMPTY_IMAGE, entity, values)
        assert (written, error) == (0, Error.INVALID_REQUEST), (entity, values)
    assert altered(EMPTY_IMAGE, (("ip", None),), {"connection_creation_rate": 1.0})[1:] == (1, 0)
