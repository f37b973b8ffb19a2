"""Jinja chat templates: sandboxed, metered template engine, and prompt skeletons found by symbolic
runs.
"""
