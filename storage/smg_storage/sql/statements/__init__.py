"""Every statement, once; each with the tenant in it."""
