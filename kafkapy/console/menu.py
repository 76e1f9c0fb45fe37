"""The entries of the menu, each as (name, path, label).

The value `tab` of a page's template is the name of the entry to which the page belongs; the menu marks this entry.
`path` is appended to the path of the cluster.
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
