"""Clusters whose nodes authenticate to each other, with each protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.test_secured_clusters import CLUSTERS, records_pass


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL", "SSL"])
@pytest.mark.parametrize("name", CLUSTERS)
def test_records_pass_between_nodes_that_authenticate(tmp_path: Path, name: str, protocol: str) -> None:
    records_pass(tmp_path, name, protocol)
