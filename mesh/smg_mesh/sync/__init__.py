"""Sync: replication of shared state by rumors and anti-entropy exchanges, without any I/O. Pure."""
