"""`kafkapy jobs new`: the files that it writes, and the names that it refuses."""

from __future__ import annotations

import ast

import pytest

from kafkapy.tools import jobs
from kafkapy.tools.job_catalog import describe, find_job
from kafkapy.tools.jobs_new import write_job
from kafkapy.tools.option import ToolError


def test_a_job_is_written_with_its_test(tmp_path):
    paths = write_job("page-views", tmp_path)
    assert [path.name for path in paths] == ["page_views.py", "test_page_views.py", "conftest.py"]
    assert all(path.parent == tmp_path / "page_views" for path in paths)
    text = paths[0].read_text()
    assert describe(paths[0]) == "the number of values of each kind and window of time, from a topic."
    assert 'NAME = "page-views"' in text and text.startswith('"""Page views: ')
    for path in paths:
        ast.parse(path.read_text())
        assert "my_job" not in path.read_text().lower() and "my-job" not in path.read_text()


@pytest.mark.parametrize("name", ["Page", "1st", "page views", "../x", "", "hot-search", "hot_search", "class"])
def test_other_names_are_refused(tmp_path, name):
    with pytest.raises(ToolError, match=r"cannot be the name of a job|is taken by"):
        write_job(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert jobs.main(["new", "views"]) == 0
    assert "kafkapy jobs submit views/views.py" in capsys.readouterr().out
    assert jobs.main(["new", "views"]) == 1
    assert capsys.readouterr().err.strip() == "views exists already"
    assert jobs.main(["new"]) == 1 and jobs.main(["new", "--help"]) == 0 and jobs.main(["new", "a", "b"]) == 1


def test_a_file_is_a_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (path,) = write_job("views", tmp_path)[:1]
    assert find_job("./views/views.py") == find_job("views/views.py") == path
    with pytest.raises(ToolError, match=r"there is no file \./mine\.py"):
        find_job("./mine.py")
