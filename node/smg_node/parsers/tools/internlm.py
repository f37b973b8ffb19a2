"""A JSON object between two tokens, and a third that says it is a function of the client's: InternLM.

    <|action_start|><|plugin|>{"name": "get_tide", "parameters": {"port": "Brest"}}<|action_end|>

Code for its own interpreter stands between the same tokens; nobody declared that, so it is text.
"""

from typing import Final

from smg_node.parsers.notations.json_wrapped import Wrapped

_CALLS: Final = Wrapped(("<|action_start|>",), ("<|action_end|>",), before=("<|plugin|>",))

FORMATS: Final = (_CALLS.form("internlm"),)
