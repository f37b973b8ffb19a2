"""One gateway node: how a request becomes an answer."""

__version__ = "0.1.0"
