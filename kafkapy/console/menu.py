"""The entries of the menu: (the name by which a page is marked as belonging to the entry, path, label).

The path follows that of a cluster.
"""

MENU = (
    ("overview", "/", "Overview"),
    ("topics", "/topics", "Topics"),
    ("groups", "/groups", "Groups"),
    ("jobs", "/jobs", "Spark jobs"),
    ("history", "/history", "History"),
    ("brokers", "/brokers", "Brokers"),
    ("directories", "/directories", "Log directories"),
    ("transactions", "/transactions", "Transactions"),
    ("security", "/security", "Permissions"),
    ("compare", "/compare", "Compare"),
    ("metadata", "/metadata", "Metadata log"),
)
