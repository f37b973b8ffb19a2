"""Served tools of a request: tools that this node runs, as a body, and the context it continues, name them."""
