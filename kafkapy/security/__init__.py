"""The identities of clients and their permissions: principals, ACLs, the authorizer, SASL, tokens, TLS settings.

Only the retrieval of OAuth keys opens a socket and starts a thread.
"""
