"""The doctor's view of throttled clients, from a metrics page."""

from __future__ import annotations

from kafkapy.tools.diagnosis.quotas import MOST_SHOWN, throttled_clients

PAGE = """\
# TYPE kafka_server_produce_throttle_time gauge
kafka_server_produce_throttle_time{user="ann",client_id="app"} 512.4
kafka_server_produce_throttle_time{user="bob",client_id=""} 0
# TYPE kafkapy_quota_producer_byte_rate gauge
kafkapy_quota_producer_byte_rate{user="ann",client_id="app",rule="user ann, default client-id"} 1048576
kafkapy_quota_producer_byte_rate{user="bob",client_id="",rule="default user"} 5
# TYPE kafka_server_controllermutation_throttle_time gauge
kafka_server_controllermutation_throttle_time{user="",client_id="maker"} 2000
"""


def test_throttled_clients_are_shown_with_the_rule_that_applies() -> None:
    assert [(each.level, each.text) for each in throttled_clients(PAGE)] == [
        (
            "note",
            "client-id maker is delayed by 2000 ms on average: controller_mutation_rate of an unknown entity is 0",
        ),
        (
            "note",
            "user ann, client-id app is delayed by 512 ms on average: "
            "producer_byte_rate of user ann, default client-id is 1048576",
        ),
    ]


def test_nobody_is_throttled() -> None:
    assert list(throttled_clients("")) == []
    (finding,) = throttled_clients(
        "# TYPE kafkapy_quota_producer_byte_rate gauge\nkafkapy_quota_producer_byte_rate 1\n"
    )
    assert (finding.level, finding.text) == ("good", "no client is throttled")


def test_the_list_is_bounded() -> None:
    lines = [
        f'kafka_server_fetch_throttle_time{{user="u{number}",client_id=""}} 7\n' for number in range(MOST_SHOWN + 3)
    ]
    found = list(throttled_clients("# TYPE kafka_server_fetch_throttle_time gauge\n" + "".join(lines)))
    assert len(found) == MOST_SHOWN + 1
    assert found[-1].text == "3 more clients are throttled"
