"""Cohere Command R7B and A calls: an array between two tokens, with key names of their own.

    <|START_ACTION|>[⏎{"tool_call_id": "0", "tool_name": "book_room", "parameters": {"nights": 2}}⏎]<|END_ACTION|>

The printed ids count the calls of a conversation; clients get ids that are unique.
"""

from typing import Final

from smg_node.parsers.notations.json_calls import Shape
from smg_node.parsers.notations.json_wrapped import Wrapped
from smg_node.parsers.reading.format import Tag

_OPENER: Final = "<|START_ACTION|>"
_CLOSER: Final = "<|END_ACTION|>"
_CALLS: Final = Wrapped((_OPENER,), (_CLOSER,), Shape(names=("tool_name", "name")))

FORMATS: Final = (
    _CALLS.form(
        "cohere",
        Tag(
            f'{_OPENER}[\n    {{"tool_call_id": "0", "tool_name": "NAME", "parameters": ',
            f"}}\n]{_CLOSER}",
            (_OPENER,),
        ),
    ),
)
