"""Declared metrics, by topic: name, type, labels, buckets and meaning of each, once."""
