"""The command-line tools, one file each, with Apache Kafka's names, flags and output.

A tool declares its flags once (`Option`); parsing, `--help`, docs/compatibility.md and shell completion derive from it.
`kafkapy/__main__.py` names the tools and imports one when it is asked for.
"""
