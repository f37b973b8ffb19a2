"""Sockets of the Responses API: what clients say, what they are told besides events, what is remembered. Pure."""
