"""The library of the jobs: functions for arguments, session, source, values and sinks.

Python code that runs on executors must not use it, because they do not have this package.
"""
