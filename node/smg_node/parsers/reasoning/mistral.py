"""`[THINK]` … `[/THINK]`: Magistral since July 2025 and what followed it; control tokens, printed by the model."""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (ThoughtFormat("mistral", ("[THINK]",), ("[/THINK]",)),)
