"""Cython core: knows bytes, not brokers. One extension per `.pyx`; shared by `cimport`."""
