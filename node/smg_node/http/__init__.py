"""The public HTTP surface."""
