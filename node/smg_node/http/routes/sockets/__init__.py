"""Sockets: the routes that are WebSockets."""
