"""Statements of the SQL store: every statement, once; each with the tenant in it."""
