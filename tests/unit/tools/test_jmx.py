"""The successor of the JMX tool: beans' names are found on a metrics page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkapy.tools import jmx
from kafkapy.tools.jmx import Query, attributes_of, chosen

PAGE = """# TYPE kafka_server_brokertopicmetrics_messagesin counter
kafka_server_brokertopicmetrics_messagesin_total 30.0
kafka_server_brokertopicmetrics_messagesin_total{topic="a"} 10.0
kafka_server_brokertopicmetrics_messagesin_total{topic="b"} 20.0
# TYPE kafka_log_log_size gauge
kafka_log_log_size{topic="a",partition="0"} 4096.0
# TYPE kafka_network_requestmetrics_totaltimems summary
kafka_network_requestmetrics_totaltimems{request="Fetch",quantile="0.50"} 7.5
kafka_network_requestmetrics_totaltimems_count{request="Fetch"} 3.0
kafka_network_requestmetrics_totaltimems_sum{request="Fetch"} 9.0
# TYPE kafka_server_produce_byte_rate gauge
kafka_server_produce_byte_rate{user="",client_id="one"} 12.0
# TYPE kafka_server_produce_throttle_time gauge
kafka_server_produce_throttle_time{user="",client_id="one"} 0.5
"""
TOPICS = "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec"


@pytest.fixture(autouse=True)
def page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jmx, "fetch", lambda address: PAGE)


def values(*queries: str, wanted: str = "") -> dict[str, str]:
    return chosen(attributes_of(PAGE), [Query(each) for each in queries], frozenset(filter(None, [wanted])))


def test_a_bean_with_a_name_has_its_series():
    assert values(TOPICS) == {f"{TOPICS}:Count": "30"}
    assert values(f"{TOPICS},topic=b") == {f"{TOPICS},topic=b:Count": "20"}
    size = "kafka.log:type=Log,name=Size,topic=a,partition=0"
    assert values(size, wanted="Value") == {f"{size}:Value": "4096"}
    assert values(size, wanted="Count") == {}


def test_quantiles_are_percentiles():
    bean = "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Fetch"
    assert values(bean) == {f"{bean}:50thPercentile": "7.5", f"{bean}:Count": "3"}


def test_a_bean_without_a_name_has_attributes():
    bean = "kafka.server:type=Produce,user=,client-id=one"
    assert values(bean) == {f"{bean}:byte-rate": "12", f"{bean}:throttle-time": "0.5"}


def test_wildcards_select_all_beans_that_match():
    assert values("kafka.server:type=BrokerTopicMetrics,name=*,topic=*") == {
        "kafka_server_brokertopicmetrics_messagesin{topic=a}:Count": "10",
        "kafka_server_brokertopicmetrics_messagesin{topic=b}:Count": "20",
    }
    assert len(values("kafka.server:type=BrokerTopicMetrics,*")) == 3
    assert len(values("kafka.server:type=*,*")) == 5
    assert len(values()) == 8


def test_the_formats(capsys: pytest.CaptureFixture[str]):
    name = f"{TOPICS}:Count"
    words = ["--object-name", TOPICS, "--one-time", "--date-format", "'now'", "--report-format"]
    expected = {
        "original": f'"time","{name}"\nnow,30\n',
        "properties": f"time=now\n{name}=30\n",
        "csv": f'time,"now"\n{name},"30"\n',
        "tsv": f"time\tnow\n{name}\t30\n",
    }
    for layout, text in expected.items():
        assert jmx.main([*words, layout]) == 0
        assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--object-name", "kafka"], "Invalid object name: kafka"),
        (["--object-name", "a:type=b"], "No matched attributes for the queried objects [a:type=b]."),
        (["--jmx-url", "ftp://x"], "ftp://x is neither the address of a metrics page"),
    ],
)
def test_bad_input_is_named(words: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert jmx.main(["--one-time", *words]) == 1
    assert capsys.readouterr().err.startswith(message)


def test_the_host_and_port_of_a_jmx_service_are_those_of_the_page(monkeypatch: pytest.MonkeyPatch):
    seen: list[str] = []
    monkeypatch.setattr(jmx, "fetch", lambda address: seen.append(address.url) or PAGE)
    for url in ("service:jmx:rmi:///jndi/rmi://:9999/jmxrmi", "service:jmx:rmi:///jndi/rmi://host:1/jmxrmi"):
        assert jmx.main(["--one-time", "--jmx-url", url]) == 0
    assert seen == ["http://localhost:9999/metrics", "http://host:1/metrics"]


def test_wait_ends_when_every_bean_has_a_value(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    pages: Iterator[str] = iter(["", PAGE])
    monkeypatch.setattr(jmx, "fetch", lambda address: next(pages))
    assert jmx.main(["--one-time", "--wait", "--object-name", TOPICS]) == 0
    assert capsys.readouterr().out.endswith(",30\n")
