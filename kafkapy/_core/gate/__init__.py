"""The gate: compiled code that serves usual Produce and Fetch requests without the interpreter lock.

It declines every other request, which the request handlers in Python then serve (the Python path).
"""
