"""The scenario of ten things that are asked of every cluster, and that gateways are known to get wrong."""
