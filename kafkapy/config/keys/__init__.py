"""The rows of the configuration table, one module per subject."""
