"""The files of the Debian package that the program itself generates: completion scripts, manual pages and links."""

from __future__ import annotations

import gzip
import importlib.util
import os
import sys
from pathlib import Path

from tests.packaging.executable import PACKAGING, ROOT


def test_the_package_holds_completion_manual_pages_and_links(tmp_path: Path):
    folder, tree = tmp_path / "folder", tmp_path / "tree"
    folder.mkdir()
    tree.mkdir()
    program = folder / "kafkapy"  # instead of the executable, which takes minutes to build
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from kafkapy.__main__ import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    spec = importlib.util.spec_from_file_location("debian_package", PACKAGING / "debian" / "package.py")
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    package.fill(tree, folder)
    completions = tree / "usr/share/bash-completion/completions"
    assert "complete -o default -F _kafkapy" in (completions / "kafkapy").read_text()
    assert os.readlink(completions / "kafka-topics.sh") == "kafkapy"
    assert (tree / "usr/share/zsh/vendor-completions/_kafkapy").is_file()
    assert (tree / "usr/share/fish/vendor_completions.d/kafka-topics.sh.fish").is_symlink()
    assert "kafka-topics.sh" in os.listdir(tree / "usr/lib/kafkapy/bin")
    page = gzip.decompress((tree / "usr/share/man/man1/kafkapy-topics.1.gz").read_bytes()).decode()
    assert page.startswith('.TH "KAFKAPY\\-TOPICS" "1"')
