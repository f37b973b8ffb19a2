"""The shape of the history tables, version by version."""
