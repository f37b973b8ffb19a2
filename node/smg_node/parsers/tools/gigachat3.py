"""GigaChat 3 and 3.1 (gigachat3) calls: a JSON object as a turn of the role `function call`, or
behind a token.

    function call<|role_sep|>⏎{"name": "get_tide", "arguments": {"port": "Brest"}}
    <|function_call|>{"name": …}

The role is spelled in plain words, and the turn before it ends with a token that says nothing to a reader.
"""

from typing import Final

from smg_node.parsers.notations.json_wrapped import Wrapped

_CALLS: Final = Wrapped(("function call<|role_sep|>", "<|function_call|>"), ("<|message_sep|>",))

FORMATS: Final = (_CALLS.form("gigachat3"),)
