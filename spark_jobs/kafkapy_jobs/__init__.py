"""What the jobs share: arguments, session, source, values, sinks. Functions to call, not a framework to fill in.

Nothing here may be needed by Python code that runs on executors: they do not have this package.
"""
