"""Mistral reasoning: `[THINK]` … `[/THINK]`, control tokens of Magistral since July 2025 and later
models.
"""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (ThoughtFormat("mistral", ("[THINK]",), ("[/THINK]",)),)
