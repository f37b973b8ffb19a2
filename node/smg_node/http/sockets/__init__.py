"""Sockets: WebSocket on the node's own HTTP server: handshake, frames, life, requests made from one."""
