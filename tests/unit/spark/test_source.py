"""The data source as Spark calls it, without Spark: registration, schema, and readers for wrong options."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from kafkapy.errors import ConfigError
from kafkapy.spark import register
from kafkapy.spark.batch_reader import BatchReader, FilteringBatchReader
from kafkapy.spark.batch_writer import BatchWriter
from kafkapy.spark.columns import HEADERS, arrow_schema, chosen_columns, schema_text
from kafkapy.spark.read_limits import pyspark_datasource
from kafkapy.spark.source import KafkapySource
from kafkapy.spark.start_and_end import SpecKind
from kafkapy.spark.stream_reader import RefusingStreamReader, StreamReader
from kafkapy.spark.stream_writer import StreamWriter

OPTIONS = {"kafka.bootstrap.servers": "h:1", "subscribe": "a"}
VALUE = StructType([StructField("value", BinaryType())])


class Registry:
    """The part of a session that knows data sources."""

    def __init__(self, known=False, error=None):
        self.known = known
        self.error = error
        self.registered = []
        self.settings = {}
        self.conf = SimpleNamespace(set=self.settings.__setitem__)
        self.dataSource = SimpleNamespace(register=self._register)
        manager = SimpleNamespace(dataSourceExists=lambda name: self.known and name == "kafkapy")
        state = SimpleNamespace(dataSourceManager=lambda: manager)
        self._jsparkSession = SimpleNamespace(sessionState=lambda: state)

    def _register(self, source):
        if self.error is not None:
            raise self.error
        self.registered.append(source)


def test_the_source_is_registered_once():
    """Spark warns if a data source replaces one that it has found among the installed packages."""
    session = Registry()
    register(session)
    assert session.registered == [KafkapySource]
    assert session.settings == {"spark.sql.python.filterPushdown.enabled": "true"}
    known = Registry(known=True)
    register(known)
    assert known.registered == [] and known.settings == session.settings
    connect = Registry(known=True)
    del connect._jsparkSession
    register(connect)
    assert connect.registered == [KafkapySource]


def test_spark_4_0_refuses_what_it_has_found_by_itself():
    register(Registry(error=AnalysisException("[DATA_SOURCE_ALREADY_EXISTS] kafkapy")))
    with pytest.raises(AnalysisException, match="OTHER"):
        register(Registry(error=AnalysisException("[OTHER] kafkapy")))


def test_the_schema_has_headers_on_demand():
    plain = (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
    )
    assert KafkapySource(OPTIONS).schema() == plain
    headers = KafkapySource({**OPTIONS, "includeHeaders": "true"}).schema()
    assert headers == schema_text(include_headers=True) == f"{plain}, headers array<struct<key:string,value:binary>>"
    assert KafkapySource.name() == "kafkapy"
    with pytest.raises(ConfigError, match="Unknown option 'sbscribe'"):
        KafkapySource({**OPTIONS, "sbscribe": "a"}).schema()


def test_a_schema_chooses_columns():
    schema = StructType([StructField("offset", LongType()), StructField("value", BinaryType())])
    assert chosen_columns(schema) == ("offset", "value")
    assert arrow_schema(("offset", HEADERS)).names == ["offset", "headers"]
    with pytest.raises(ConfigError, match="has no column words: it has key, value"):
        chosen_columns(StructType([StructField("words", StringType())]))
    with pytest.raises(ConfigError, match="Column value is binary, not string"):
        chosen_columns(StructType([StructField("value", StringType())]))


def test_readers_and_writers_follow_the_options():
    assert type(KafkapySource(OPTIONS).reader(VALUE)) is BatchReader
    assert type(KafkapySource({**OPTIONS, "pushFilters": "true"}).reader(VALUE)) is FilteringBatchReader
    stream = KafkapySource(OPTIONS).streamReader(VALUE)
    assert type(stream) is StreamReader
    assert stream._options.starting.kind is SpecKind.LATEST and stream._columns == ("value",)
    target = {"kafka.bootstrap.servers": "h:1", "topic": "t"}
    assert type(KafkapySource(target).writer(VALUE, False)) is BatchWriter
    assert type(KafkapySource(target).streamWriter(VALUE, False)) is StreamWriter
    with pytest.raises(ConfigError, match="starting offset can't be latest"):
        KafkapySource({**OPTIONS, "startingOffsets": "latest"}).reader(VALUE)


@pytest.mark.parametrize("reader", [StreamReader, RefusingStreamReader])
def test_a_stream_can_be_triggered_with_available_now_where_spark_lets_python_sources(reader):
    assert pyspark_datasource is None or issubclass(reader, pyspark_datasource.SupportsTriggerAvailableNow)


@pytest.mark.parametrize(
    "call",
    [
        lambda reader: reader.initialOffset(),
        lambda reader: reader.getDefaultReadLimit(),
        lambda reader: reader.latestOffset({}, None),
        lambda reader: reader.prepareForTriggerAvailableNow(),
        lambda reader: reader.partitions({}, {}),
        lambda reader: reader.read(None),
    ],
)
def test_a_stream_with_wrong_options_fails_at_its_first_question(call):
    """An exception of `streamReader` itself would be hidden by an error of Spark's runner."""
    reader = KafkapySource({**OPTIONS, "endingOffsets": "latest"}).streamReader(VALUE)
    assert type(reader) is RefusingStreamReader
    with pytest.raises(ConfigError, match="endingOffsets is not valid in streaming queries"):
        call(reader)
    reader.stop()


def test_an_old_pyspark_is_one_line(monkeypatch):
    """PySpark before 4.0 has no module for data sources in Python."""
    monkeypatch.setattr("pyspark.__version__", "3.5.1")
    monkeypatch.setitem(sys.modules, "pyspark.sql.datasource", None)
    with pytest.raises(RuntimeError, match=r"^The data source kafkapy needs PySpark 4, and this is 3.5.1: pip install"):
        register(None)
