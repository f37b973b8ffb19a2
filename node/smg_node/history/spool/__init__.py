"""Spool: acknowledged turns on the local disk, waiting for the store to be available again."""
