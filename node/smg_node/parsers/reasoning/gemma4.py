"""Gemma 4 (gemma4) reasoning: `<|channel>thought` and a newline … `<channel|>`.

A thought that is off is printed by the prompt, empty. The newline behind the opener is layout like any other.
"""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (ThoughtFormat("gemma4", ("<|channel>thought",), ("<channel|>",), trim=True),)
