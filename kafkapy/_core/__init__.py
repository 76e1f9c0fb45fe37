"""The Cython core, in five packages. One extension is built per `.pyx`; extensions share code by `cimport`."""
