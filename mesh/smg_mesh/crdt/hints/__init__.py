"""Hints: lossy cache hints between peers: publisher, reader, messages, and the store they go to."""
