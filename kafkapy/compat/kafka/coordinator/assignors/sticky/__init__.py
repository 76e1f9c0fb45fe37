"""The package of kafka-python that has the sticky assignor."""
