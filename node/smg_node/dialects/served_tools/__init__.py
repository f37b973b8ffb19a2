"""Forms of runs of this node's tools that more than one public API has: citations, and tools that a search found; pure."""
