"""Constraints: checks of JSON Schemas, regular expressions and grammars before they reach an
engine. Pure.
"""
