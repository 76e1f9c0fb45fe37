"""Who a client is, and what it may do: principals, ACLs, the authorizer, SASL, delegation tokens, TLS settings.

Nothing in this package opens a socket or starts a thread, but for the retrieval of OAuth keys and tokens.
"""
