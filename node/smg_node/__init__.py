"""SMG node: one gateway node of a cluster, from HTTP request to engine and back."""

__version__ = "0.1.0"
