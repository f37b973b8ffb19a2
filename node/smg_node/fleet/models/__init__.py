"""Models: served models with their tokenizers, templates and output formats, and the files they
come from.
"""
