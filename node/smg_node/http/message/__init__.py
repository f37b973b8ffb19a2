"""Message."""
