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
        (ANN, {"producer_byte_rate": 2.0**64}),
        ((("ip", None),), {"connection_creation_rate": 2.0**31}),
        (ANN, {"producer_byte_rate": float("inf")}),
        (ANN, {"producer_byte_rate": 1.5}),
        (ANN, {"producer_byte_rate": 0.9999999}),
    ):
        _, written, error = altered(EMPTY_IMAGE, entity, values)
        assert (written, error) == (0, Error.INVALID_REQUEST), (entity, values)
    assert altered(EMPTY_IMAGE, (("ip", None),), {"connection_creation_rate": 1.0})[1:] == (1, 0)


def test_values_that_are_nearly_integers_are_accepted():
    for value in (1e-300, 1.0000001, 2.0**63):
        assert altered(EMPTY_IMAGE, ANN, {"producer_byte_rate": value})[1:] == (1, 0), value
    assert altered(EMPTY_IMAGE, ANN, {"request_percentage": float("inf")})[1:] == (1, 0)
    image, _, error = altered(EMPTY_IMAGE, ANN, {"producer_byte_rate": float("nan")})
    assert (error, str(image.client_quotas[ANN])) == (0, "{'producer_byte_rate': nan}")


def test_a_repeated_entity_is_refused_after_its_first_change():
    first, second = QuotaAlteration(ANN, {"producer_byte_rate": 5.0}), QuotaAlteration(ANN, {"producer_byte_rate": 6.0})
    result = alter_client_quotas(EMPTY_IMAGE, [first, second], ())
    assert [message.value for message, _ in result.records] == [5.0]
    assert result.response[ANN].message == "Ignoring duplicate entity ClientQuotaEntity(entries={user=ann})"
    both = (("client-id", None), ("user", "ann"))
    twice = QuotaAlteration(both, {"producer_byte_rate": 5.0}, has_duplicates=True)
    result = alter_client_quotas(EMPTY_IMAGE, [twice], ())
    text = "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=null, user=ann})"
    assert (result.records, result.response[both].message) == ([], text)
