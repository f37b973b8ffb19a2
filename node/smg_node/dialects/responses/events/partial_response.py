"""Partial response: object of a response in progress on another node, with its finished items."""

from collections.abc import Sequence
from typing import Final

import msgspec

from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.responses.events.numbered_events import NumberedEvent

_RUNS: Final = "response.in_progress"
_ITEM_DONE: Final = "response.output_item.done"


class _Done(msgspec.Struct):
    item: msgspec.Raw
    output_index: int


_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_done: Final = msgspec.json.Decoder(_Done).decode


class PartialResponse:
    """Starts from the object as it is stored while the response is made; ValueError if that is
    none.
    """

    def __init__(self, document: bytes) -> None:
        try:
            self._fields = _object(document)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"not the document of a response: {error}") from error
        # By their places: an item may be done before one that began earlier.
        self._output: dict[int, bytes] = {}
        self._runs = False

    def hear(self, told: Sequence[NumberedEvent]) -> None:
        """Apply the next event, in order; ValueError for an item that is none."""
        for one in told:
            if one.type == _RUNS:
                self._runs = True
            elif one.type == _ITEM_DONE:
                try:
                    done = _done(one.data)
                    self._output[done.output_index] = bytes(done.item)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise ValueError(f"event {one.sequence} ends no item: {error}") from error

    def body(self) -> bytes:
        """Return the object as it is now."""
        now: dict[str, object] = {
            "output": [msgspec.Raw(self._output[place]) for place in sorted(self._output)]
        }
        if self._runs:
            now["status"] = "in_progress"
        return json_line({**self._fields, **now})
