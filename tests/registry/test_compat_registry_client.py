"""confluent-kafka's registry clients and ours, with coroutines, tokens, associations and cached latest versions."""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

ORIGINAL, OURS = "confluent_kafka", "kafkapy.compat.confluent_kafka"
CLUSTER = {"bearer.auth.logical.cluster": "lsrc-1"}


class FakeRegistry(ThreadingHTTPServer):
    """Stores the requests that it receives, and answers each with a prepared value."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, str, dict, object]] = []
        self.answers: dict[str, object] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"

    def named(self, header):
        return [headers.get(header) for _, _, headers, _ in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        is_json = "json" in self.headers.get("Content-Type", "")
        self.server.requests.append(
            (self.command, self.path, dict(self.headers), json.loads(body) if is_json else body)
        )
        found = self.server.answers.get(self.path.partition("?")[0], {})
        data = b"" if found is None else json.dumps(found).encode()
        self.send_response(204 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the names that the standard library calls

    def log_message(self, *args):
        """Writes nothing."""


@pytest.fixture
def fake():
    with FakeRegistry() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(params=[ORIGINAL, OURS])
def module(request):
    return importlib.import_module(f"{request.param}.schema_registry")


def test_the_asynchronous_client_has_the_results_of_the_other_one(module, registry):
    subject = f"async-{module.__name__}"

    async def main():
        async with module.AsyncSchemaRegistryClient.new_client({"url": registry.url}) as client:
            schema = module.Schema('"string"', "AVRO")
            schema_id = await client.register_schema(subject, schema)
            assert (await client.get_schema(schema_id)).schema_type == "AVRO"
            assert (await client.lookup_schema(subject, schema)).version == 1
            assert await client.get_versions(subject) == [1]
            await client.set_compatibility(subject, "FULL")
            assert await client.get_compatibility(subject) == "FULL"
            await asyncio.gather(*(client.get_latest_version(subject) for _ in range(5)))
            await client.delete_subject(subject)
            with pytest.raises(module.SchemaRegistryError):
                await client.get_versions(subject)
            assert client.config()["url"] == registry.url

    asyncio.run(main())


def test_associations_are_requested_with_the_parameters_of_the_original(module, fake):
    client = module.SchemaRegistryClient({"url": fake.url})
    one = {"subject": "s", "resourceName": "t", "associationType": "value", "frozen": True}
    fake.answers["/associations/resources/-/t"] = [one]
    fake.answers["/associations"] = {"resourceName": "t", "associations": [{"subject": "s", "lifecycle": "STRONG"}]}
    fake.answers["/associations/resources/r"] = None
    (found,) = client.get_associations_by_resource_name("t", "-", "topic", ["key", "value"])
    assert (found.subject, found.frozen, found.to_dict()) == ("s", True, one)
    wanted = module.AssociationCreateOrUpdateInfo(subject="s", association_type="value", normalize=True)
    made = client.create_association(module.AssociationCreateOrUpdateRequest("t", "-", "r", "topic", [wanted]))
    assert (made.resource_name, made.associations[0].lifecycle) == ("t", "STRONG")
    client.delete_associations("r", "topic", ["key"], cascade_lifecycle=True)
    (_, listed, _, _), (_, _, _, body), (_, deleted, _, _) = fake.requests
    assert "associationType=key&associationType=value" in listed
    assert "resourceType=topic" in listed
    assert body["associations"] == [{"subject": "s", "associationType": "value", "normalize": True}]
    assert deleted.startswith("/associations/resources/r?")


def test_the_latest_version_is_requested_once_within_its_time(module, fake):
    fake.answers["/subjects/s/versions/latest"] = {"subject": "s", "version": 1, "id": 7, "schema": '"int"'}
    client = module.SchemaRegistryClient({"url": fake.url, "cache.latest.ttl.sec": 3600})
    assert {client.get_latest_version("s").schema_id for _ in range(3)} == {7}
    assert len(fake.requests) == 1
    client.clear_latest_caches()
    client.get_latest_version("s")
    assert len(fake.requests) == 2


@pytest.mark.parametrize(
    "conf",
    [
        {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "abc", **CLUSTER},
        {
            "bearer.auth.credentials.source": "CUSTOM",
            "bearer.auth.custom.provider.function": lambda config: {"bearer.auth.token": config["token"], **CLUSTER},
            "bearer.auth.custom.provider.config": {"token": "abc"},
        },
    ],
    ids=["static", "custom"],
)
def test_bearer_tokens_are_sent(module, fake, conf):
    fake.answers["/subjects"] = []
    module.SchemaRegistryClient({"url": fake.url, **conf}).get_subjects()
    assert fake.named("Authorization") == ["Bearer abc"]
    assert {name.lower(): value for name, value in fake.requests[0][2].items()}["target-sr-cluster"] == "lsrc-1"


def test_a_token_of_an_oauth_endpoint_is_requested_once(module, fake):
    fake.answers["/subjects"] = []
    fake.answers["/token"] = {"access_token": "abc", "expires_in": 3600, "token_type": "Bearer"}
    conf = {
        "url": fake.url,
        "bearer.auth.credentials.source": "OAUTHBEARER",
        "bearer.auth.client.id": "me",
        "bearer.auth.client.secret": "secret",
        "bearer.auth.scope": "schemas",
        "bearer.auth.issuer.endpoint.url": f"{fake.url}/token",
        "bearer.auth.identity.pool.id": ["p1", "p2"],
        **CLUSTER,
    }
    client = module.SchemaRegistryClient(conf)
    client.get_subjects()
    client.get_subjects()
    assert [path.partition("?")[0] for _, path, _, _ in fake.requests] == ["/token", "/subjects", "/subjects"]
    assert fake.named("Authorization")[1:] == ["Bearer abc"] * 2
    sent = {name.lower(): value for name, value in fake.requests[1][2].items()}
    assert sent["confluent-identity-pool-id"] == "p1,p2"


@pytest.mark.parametrize(
    ("conf", "error"),
    [
        ({"bearer.auth.credentials.source": "COLOUR"}, ValueError),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "abc"}, ValueError),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN", **CLUSTER}, ValueError),
        ({"cache.latest.ttl.sec": "long"}, TypeError),
        ({"ssl.key.location": "key.pem"}, ValueError),
    ],
)
def test_a_wrong_setting_is_refused_when_the_client_is_made(module, conf, error):
    with pytest.raises(error):
        module.SchemaRegistryClient({"url": "http://localhost:1", **conf})


def make_context(module, topic, field="VALUE"):
    serialization = importlib.import_module(module.__name__.replace("schema_registry", "serialization"))
    return serialization.SerializationContext(topic, serialization.MessageField[field])


@pytest.fixture
def serde(module):
    return importlib.import_module(f"{module.__name__}.serde")


def test_the_registry_names_the_subject_of_a_topic(module, serde, fake):
    client = module.SchemaRegistryClient({"url": fake.url})
    fake.answers["/associations/resources/-/t"] = [{"subject": "orders"}]
    fake.answers["/associations/resources/-/two"] = [{"subject": "a"}, {"subject": "b"}]
    fake.answers["/associations/resources/-/none"] = []
    fake.answers["/associations/resources/c1/t"] = [{"subject": "of the cluster"}]
    strategy = serde.AssociatedNameStrategy()
    assert [strategy(make_context(module, "t"), "R", client) for _ in range(3)] == ["orders"] * 3
    assert len(fake.requests) == 1
    strategy.clear_cache()
    assert strategy(make_context(module, "t"), "R", client, {serde.KAFKA_CLUSTER_ID: "c1"}) == "of the cluster"
    strategy.clear_cache()
    strategy.set_cluster_id_resolver(lambda: "c1")
    assert strategy(make_context(module, "t"), "R", client) == "of the cluster"
    strategy = serde.AssociatedNameStrategy()
    with pytest.raises(module.SerializationError, match="Multiple"):
        strategy(make_context(module, "two"), "R", client)
    assert strategy(make_context(module, "none", "KEY"), "R", client) == "none-key"
    by_record = {serde.FALLBACK_TYPE: "RECORD"}
    assert strategy(make_context(module, "none"), "R", client, by_record) == "R"
    with pytest.raises(module.SerializationError, match="No associated"):
        strategy(make_context(module, "none"), "Other", client, {serde.FALLBACK_TYPE: "NONE"})
    with pytest.raises(ValueError, match=serde.FALLBACK_TYPE):
        strategy(make_context(module, "none"), "Third", client, {serde.FALLBACK_TYPE: "COLOUR"})
    with pytest.raises(ValueError, match="SerializationContext"):
        strategy(None, "R", client)


def test_the_asynchronous_strategy_awaits_the_id_of_the_cluster(module, serde, fake):
    fake.answers["/associations/resources/c1/t"] = [{"subject": "orders"}]

    async def cluster_id():
        return "c1"

    async def main():
        async with module.AsyncSchemaRegistryClient({"url": fake.url}) as client:
            strategy = serde.AsyncAssociatedNameStrategy()
            strategy.set_async_cluster_id_resolver(cluster_id)
            assert await strategy(make_context(module, "t"), "R", client) == "orders"
            await strategy.clear_cache()

    asyncio.run(main())
