"""The rows of the configuration table, one module per subject.

The text after the colon in a module's docstring is the title of its keys in packaging/server.properties.
"""
