"""Access: API keys and the identity of a request's caller: key, tenant, role."""
