"""The modules that write the metrics page of a broker: one module for each subject, such as storage or quotas.

Their functions run on the thread that serves the page. They read the objects of other threads and do not change them.
"""
