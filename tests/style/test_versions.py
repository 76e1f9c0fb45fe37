"""Code names a version of an API by what begins with it (`FIRST_VERSION_WITH_...`) instead of repeating its number."""

from __future__ import annotations

import re

from tests.style.sources import ROOT, package_sources

_BARE = re.compile(r"\bversion *(?:>=|<=|<|>|==) *[1-9]|\b[1-9]\d* *<=? *version\b")
# These still compare with numbers. The list only becomes shorter.
NOT_YET = {
    "kafkapy/client/admin/cluster.py",
    "kafkapy/client/admin/configs.py",
    "kafkapy/client/admin/group_offsets.py",
    "kafkapy/client/admin/groups.py",
    "kafkapy/client/admin/lookups.py",
    "kafkapy/client/admin/offsets.py",
    "kafkapy/client/admin/partitions.py",
    "kafkapy/client/admin/topics.py",
    "kafkapy/client/admin/transactions.py",
    "kafkapy/client/connection.py",
    "kafkapy/client/consumer_membership.py",
    "kafkapy/client/coordinator.py",
    "kafkapy/client/membership.py",
    "kafkapy/client/metadata_updater.py",
    "kafkapy/client/offset_lookup.py",
    "kafkapy/client/transactions.py",
    "kafkapy/coordinator/transaction/transaction_records.py",
    "kafkapy/server/handlers/elections.py",
    "kafkapy/server/handlers/metadata.py",
    "kafkapy/storage/meta_properties.py",  # the version of a file
}


def test_no_version_is_compared_with_a_number():
    bare = {
        str(path.relative_to(ROOT))
        for path in package_sources()
        if path.suffix in (".py", ".pyx", ".pxd") and "generator" not in path.name and _BARE.search(path.read_text())
    }
    assert not sorted(bare - NOT_YET)
    assert not sorted(NOT_YET - bare), "names its versions now: take it off the list"
