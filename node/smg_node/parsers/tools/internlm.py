"""InternLM calls: a JSON object between two tokens, and a third that marks it as a function of the
client's.

    <|action_start|><|plugin|>{"name": "get_tide", "parameters": {"port": "Brest"}}<|action_end|>

Code for its own interpreter stands between the same tokens; no client declared that, so it is text.
"""

from typing import Final

from smg_node.parsers.notations.json_wrapped import Wrapped

_CALLS: Final = Wrapped(("<|action_start|>",), ("<|action_end|>",), before=("<|plugin|>",))

FORMATS: Final = (_CALLS.form("internlm"),)
