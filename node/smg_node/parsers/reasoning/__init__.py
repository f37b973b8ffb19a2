"""Reasoning formats: opener and closer of each model family's thoughts; one module a family, each
with `FORMATS`.
"""
