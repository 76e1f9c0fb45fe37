"""Configuration: one row per key, `.properties` files, and the broker's and the topics' typed values."""
