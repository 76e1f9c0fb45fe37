"""The files for systemd and logrotate, checked by systemd and logrotate."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from kafkapy.config import BrokerConfig
from kafkapy.config.properties import parse_properties
from kafkapy.config.table import BROKER_ROWS, OWN_ROWS

ROOT = Path(__file__).parents[2]
SYSTEMD = ROOT / "packaging" / "systemd"


def output_of(*command: object) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_unit_is_a_good_one(tmp_path: Path):
    """Creates a root with the program, because systemd checks that it exists."""
    program = tmp_path / "usr/bin/kafkapy"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "kafkapy.service"
    unit.write_text((SYSTEMD / "kafkapy.service").read_text().replace("/usr/bin/kafkapy", str(program)))
    assert "kafkapy.service" not in output_of("systemd-analyze", "verify", "--man=no", unit)


def test_the_units_hardening(tmp_path: Path):
    """Checks systemd's own measure of exposure, from 0 to 10 (less is better)."""
    shutil.copy(SYSTEMD / "kafkapy.service", tmp_path)
    command = ("systemd-analyze", "security", "--offline=true", "--threshold=25", tmp_path / "kafkapy.service")
    assert "Overall exposure level" in output_of(*command)


def test_user_and_directories_are_made(tmp_path: Path):
    for folder, name in (("sysusers.d", "sysusers.conf"), ("tmpfiles.d", "tmpfiles.conf")):
        target = tmp_path / "usr/lib" / folder / "kafkapy.conf"
        target.parent.mkdir(parents=True)
        shutil.copy(SYSTEMD / name, target)
    (tmp_path / "etc/kafkapy").mkdir(parents=True)
    output_of("systemd-sysusers", f"--root={tmp_path}", "kafkapy.conf")
    (user,) = [line for line in (tmp_path / "etc/passwd").read_text().splitlines() if line.startswith("kafkapy:")]
    assert user.endswith(":/var/lib/kafkapy:/usr/sbin/nologin")
    output_of("systemd-tmpfiles", "--create", f"--root={tmp_path}", "kafkapy.conf")
    assert (tmp_path / "var/lib/kafkapy").stat().st_mode & 0o777 == 0o750


def test_logrotate_takes_its_file(tmp_path: Path):
    """Rotates as our own user a log that is still written to."""
    log = tmp_path / "server.log"
    text = (SYSTEMD / "logrotate.conf").read_text().replace("/var/log/kafkapy/*.log", str(log))
    (tmp_path / "logrotate.conf").write_text(re.sub(r"\n +su .*", "", text))
    (tmp_path / "logrotate.conf").chmod(0o644)
    with log.open("ab", buffering=0) as writer:
        writer.write(b"before\n")
        output_of("/usr/sbin/logrotate", "--force", "--state", tmp_path / "state", tmp_path / "logrotate.conf")
        writer.write(b"after\n")
    assert (tmp_path / "server.log.1").read_bytes() == b"before\n"
    assert log.read_bytes() == b"after\n"


def test_every_key_stands_in_the_sample_with_its_default():
    """Checks that each key occurs, commented out or not, and that a broker accepts the file."""
    text = (ROOT / "packaging" / "server.properties").read_text()
    shown = [
        line.lstrip("#").partition("=")[0] for line in text.splitlines() if "=" in line and not line.startswith("# ")
    ]
    assert sorted(shown) == sorted([*BROKER_ROWS, *OWN_ROWS])
    config = BrokerConfig(parse_properties(text))
    assert config.warnings == []
    assert config.log_dirs == ["/var/lib/kafkapy/data"]
    defaults = BrokerConfig(parse_properties(text))
    uncommented = [line.removeprefix("#") for line in text.splitlines() if line.startswith("#") and line[1:2] != " "]
    stated = parse_properties("\n".join(line for line in uncommented if not line.endswith("=")))
    known = {key: value for key, value in stated.items() if key in BROKER_ROWS}
    same = BrokerConfig({**known, **defaults.originals})
    assert {key: same[key] for key in known} == {key: defaults[key] for key in known}
