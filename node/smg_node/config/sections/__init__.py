"""Sections of the settings tree: the knobs, one module a section."""
