"""The authority and the broker's certificate of the tests of TLS."""

from __future__ import annotations

import pytest

from tests.harness.certificates import CertificateAuthority, Identity


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def broker(authority: CertificateAuthority) -> Identity:
    return authority.issue("broker")
