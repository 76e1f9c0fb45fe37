"""The command-line tools: the tools of Apache Kafka, with the same names, flags and output, and kafkapy's own tools.

A tool declares its flags once (`Option`); parsing, `--help`, docs/compatibility.md and shell completion derive from it.
`kafkapy/__main__.py` has the names of all tools, and imports the module of a tool only when the tool is run.
"""
