"""Parsers of model output: split text into answer, reasoning and tool calls, incrementally.
Pure.
"""
