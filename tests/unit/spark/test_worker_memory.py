"""The objects of imported modules are exempt from garbage collections in a task of Spark, and nowhere else."""

from __future__ import annotations

import gc

import pytest
from pyspark import TaskContext

from kafkapy.spark.worker_memory import exempt_imported_modules


@pytest.fixture(autouse=True)
def unfrozen():
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_a_task_exempts_the_present_objects_once(monkeypatch):
    monkeypatch.setattr(TaskContext, "get", lambda: object())
    exempt_imported_modules()
    frozen = gc.get_freeze_count()
    assert frozen > 10_000
    later = [[] for _ in range(1000)]
    exempt_imported_modules()
    assert gc.get_freeze_count() <= frozen
    assert all(gc.is_tracked(each) for each in later)


def test_a_process_that_runs_no_task_keeps_its_collections(monkeypatch):
    monkeypatch.setattr(TaskContext, "get", lambda: None)
    exempt_imported_modules()
    assert gc.get_freeze_count() == 0
