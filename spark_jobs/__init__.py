"""Spark jobs over topics: each file is a program for spark-submit, `kafkapy_jobs` is what they share.

A job runs with nothing installed but PySpark and, for `--source kafkapy`, kafkapy: spark-submit puts a script's own
folder on the path, and the shared library lies in it. See docs/spark-jobs.md.
"""
