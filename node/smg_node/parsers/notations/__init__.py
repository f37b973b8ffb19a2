"""Notations: building blocks of call formats: JSON, Python literals, XML-like elements, key and
value pairs.
"""
