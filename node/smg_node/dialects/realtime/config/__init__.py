"""Config of a session: what clients say of it, checked, merged and shown."""
