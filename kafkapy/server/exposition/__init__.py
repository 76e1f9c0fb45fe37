"""The contents of a broker's metrics page by subject. The functions run on the page's thread and change nothing."""
