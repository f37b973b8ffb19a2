"""Constraints: grammars and schemas sent to engines so that calls and answers get the requested
form. Pure.
"""
