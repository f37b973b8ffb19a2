"""Hermes calls: a JSON object between two tags, one object for each call.

    <tool_call>⏎{"name": "find_train", "arguments": {"from": "Turin", "to": "Milan"}}⏎</tool_call>

The newlines are optional, and so is the closer where another opener or the end follows. An opener that no
object follows was text.
"""

from typing import Final

from smg_node.parsers.notations.json_wrapped import Wrapped
from smg_node.parsers.reading.format import Tag

OPENER: Final = "<tool_call>"
CLOSER: Final = "</tool_call>"
_CALLS: Final = Wrapped((OPENER,), (CLOSER,))
read: Final = _CALLS.read

FORMATS: Final = (
    _CALLS.form(
        "hermes",
        Tag(f'{OPENER}\n{{"name": "NAME", "arguments": ', f"}}\n{CLOSER}", (OPENER,)),
    ),
)
