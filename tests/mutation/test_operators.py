"""The mutants of a source: which there are, and what they look like."""

from __future__ import annotations

import pytest

from tests.mutation import cython_operators, python_operators
from tests.mutation.draw import changed_lines

PYTHON = '''
from typing import Final

LIMIT: int | None = 3

def grow(size: int | None, *, step: "int | str" = 1) -> int | None:
    """Grows."""
    log.info("grown by %d", 1 + 2)
    if size is not None and not step:
        size += step
        notify(size)
    return size

class Box:
    def __init__(self, size):
        self.size = size
'''
CYTHON = '''
cdef int grow(int *size, uint32_t wanted) except -1:
    """Grows."""
    cdef int count = <int>wanted
    if size[0] < count and size is not NULL:
        size[0] = count
        notify(&count)
    return 0
'''


def mutants(operators, source):
    return {changed_lines(source, operators.mutate(source, site)) for site in operators.sites(source)}


def test_mutants_of_python():
    assert mutants(python_operators, PYTHON) == {
        ("LIMIT: int | None = 3", "LIMIT: int | None = 4"),
        ("LIMIT: int | None = 3", "LIMIT: int | None = 2"),
        *(
            ('def grow(size: int | None, *, step: "int | str" = 1) -> int | None:', f"{head} {value}) -> int | None:")
            for head in ('def grow(size: int | None, *, step: "int | str" =',)
            for value in (0, 2)
        ),
        ("if size is not None and not step:", "if size is None and not step:"),
        ("if size is not None and not step:", "if size is not None or not step:"),
        ("if size is not None and not step:", "if size is not None and  step:"),
        ("if size is not None and not step:", "if not size is not None and not step:"),
        ("size += step", "pass"),
        ("notify(size)", "pass"),
    }


def test_mutants_of_cython():
    assert mutants(cython_operators, CYTHON) == {
        ("if size[0] < count and size is not NULL:", "if size[1] < count and size is not NULL:"),
        ("if size[0] < count and size is not NULL:", "if size[0] <= count and size is not NULL:"),
        ("if size[0] < count and size is not NULL:", "if size[0] >= count and size is not NULL:"),
        ("if size[0] < count and size is not NULL:", "if size[0] < count or size is not NULL:"),
        ("if size[0] < count and size is not NULL:", "if size[0] < count and size is  NULL:"),
        ("size[0] = count", "size[1] = count"),
        ("size[0] = count", "pass"),
        ("notify(&count)", "pass"),
        ("return 0", "return 1"),
    }


@pytest.mark.parametrize(("operators", "source"), [(python_operators, PYTHON), (cython_operators, CYTHON)])
def test_a_site_names_the_line_that_changes(operators, source):
    lines = source.splitlines()
    for site in operators.sites(source):
        assert lines[site.line - 1].strip() == changed_lines(source, operators.mutate(source, site))[0]
