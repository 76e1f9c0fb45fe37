"""Drop-in replacements of other Kafka clients for Python: a program changes its imports and nothing else.

Each package has the names, arguments, results and exceptions of the client that it replaces, and runs on
`kafkapy.client`. `docs/drop-in-clients.md` lists what is covered. Nothing else in kafkapy uses these packages.
"""
