"""Peers: history held by other nodes: routing by id, remote stores, pending writes, announcements."""
