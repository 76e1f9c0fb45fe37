"""The gate: serves the usual produce and fetch requests without the interpreter lock."""
