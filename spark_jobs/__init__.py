"""Spark jobs over topics: each file is a program, and `kafkapy_jobs` is the library that they share.

A job needs only PySpark and, for `--source kafkapy`, kafkapy: the folder of a script is on Python's path, and the
library is in that folder. See docs/spark-jobs.md.
"""
