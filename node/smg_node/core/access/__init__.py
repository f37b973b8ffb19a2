"""Access words: permissions, and the roles that are built in; the configuration names them, and doors go by them."""
