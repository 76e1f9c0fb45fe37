"""The entries of the menu: the name by which a page says that an entry is its own, the path below that of a cluster,
and the label.
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
