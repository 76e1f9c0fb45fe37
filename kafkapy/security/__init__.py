"""The identities of clients and their permissions: principals, ACLs, the authorizer, SASL, tokens, TLS settings.

Nothing in this package opens a socket or starts a thread, but for the retrieval of OAuth keys and tokens.
"""
