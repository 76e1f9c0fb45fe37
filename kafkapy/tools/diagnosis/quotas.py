"""Reports which clients of a running broker are throttled, and by which quota, from the broker's metrics page."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from kafkapy.tools.diagnosis.finding import GOOD, NOTE, Finding, Findings
from kafkapy.tools.metrics import address_in_file, fetch
from kafkapy.tools.option import ToolError

SUBJECT = "quotas"
MOST_SHOWN = 20
# The metric with the throttle times of a kind of quota, and the key of the quota.
KINDS = {
    "kafka_server_produce_throttle_time": "producer_byte_rate",
    "kafka_server_fetch_throttle_time": "consumer_byte_rate",
    "kafka_server_request_throttle_time": "request_percentage",
    "kafka_server_controllermutation_throttle_time": "controller_mutation_rate",
}
Client = tuple[str, str, str]  # key of the quota, user, client id


def check_quotas(path: str) -> Findings:
    """Yields a note for each client that was delayed within the last window of its quota. `path` is the broker's
    configuration file."""
    try:
        page = fetch(address_in_file(path))
    except ToolError as error:
        yield Finding(NOTE, SUBJECT, f"the throttled clients are not known: {error}")
        return
    yield from throttled_clients(page)


def throttled_clients(page: str) -> Findings:
    """Yields a note for each throttled client. `page` is the text of a broker's metrics page."""
    delays: dict[Client, float] = {}
    limits: dict[Client, tuple[float, str]] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            labels = sample.labels
            client = (labels.get("user", ""), labels.get("client_id", ""))
            if sample.name in KINDS:
                delays[(KINDS[sample.name], *client)] = sample.value
            elif sample.name.startswith("kafkapy_quota_"):
                key = sample.name.removeprefix("kafkapy_quota_")
                limits[(key, *client)] = (sample.value, labels.get("rule", ""))
    throttled = sorted((each for each in delays if delays[each] > 0), key=lambda each: -delays[each])
    if limits and not throttled:
        yield Finding(GOOD, SUBJECT, "no client is throttled")
    for each in throttled[:MOST_SHOWN]:
        key, user, client_id = each
        names = [f"user {user}"] * bool(user) + [f"client-id {client_id}"] * bool(client_id)
        bound, rule = limits.get(each, (0.0, ""))
        text = f"{', '.join(names) or 'a client without a name'} is delayed by {delays[each]:.0f} ms on average"
        yield Finding(NOTE, SUBJECT, f"{text}: {key} of {rule or 'an unknown entity'} is {bound:.10g}")
    if len(throttled) > MOST_SHOWN:
        yield Finding(NOTE, SUBJECT, f"{len(throttled) - MOST_SHOWN} more clients are throttled")
