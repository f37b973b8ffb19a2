"""Gemma 4 (gemma4) calls: `call:name{…}`, whose strings stand between tokens and may hold anything
else.

<|tool_call>call:find_museum{city:<|"|>Ghent<|"|>,max:3,tags:[<|"|>art<|"|>]}<tool_call|>
"""

from typing import Final

from smg_node.parsers.notations.brace_calls import own_calls
from smg_node.parsers.reading.format import ToolFormat

FORMATS: Final = (
    ToolFormat(
        "gemma4",
        own_calls('<|"|>', "<tool_call|>"),
        openers=("<|tool_call>",),
        noise=("<tool_call|>",),
    ),
)
