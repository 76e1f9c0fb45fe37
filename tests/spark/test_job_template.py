"""The test that `kafkapy jobs new` writes, in the session of these tests."""

from __future__ import annotations

import importlib
import sys

import pytest

from kafkapy.tools.jobs_new import write_job


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Returns the module of the test of a new job."""
    write_job("page-views", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "page_views"))
    yield importlib.import_module("test_page_views")
    for name in ("test_page_views", "page_views"):
        sys.modules.pop(name, None)


def test_the_tests_of_a_new_job_pass(spark, written):
    written.test_kinds_are_counted_by_window(spark)
    written.test_values_that_cannot_be_read_have_a_reason(spark)
    written.test_the_default_topic()
