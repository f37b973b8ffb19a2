"""Audit: adds up the books of all nodes, and reports one limit to operators."""
