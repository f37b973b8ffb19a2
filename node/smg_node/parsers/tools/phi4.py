"""Phi-4-mini (phi4) calls: an array behind a word, or between tokens.

    functools[{"name": "get_tide", "arguments": {"port": "Brest"}}]
    <|tool_call|>[{"name": …}]<|/tool_call|>

The word is one of Python's too: it opens calls only before a bracket and a call.
"""

from typing import Final

from smg_node.parsers.notations.json_wrapped import Wrapped

_CALLS: Final = Wrapped(("functools[", "<|tool_call|>"), ("<|/tool_call|>",))

FORMATS: Final = (_CALLS.form("phi4"),)
