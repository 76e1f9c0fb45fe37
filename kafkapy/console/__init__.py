"""The console: a web application that shows and changes clusters. It is a client of any broker (`kafkapy.client`).

command        the tool `kafkapy console`: options, listening, login
application    routes, sessions and errors of the web application
cluster_view   what is read from one cluster, with short-lived caches
pages          one module for each group of pages: a function of a `Visit` that returns the values of a template
record_search  reads records and filters them by columns
"""
