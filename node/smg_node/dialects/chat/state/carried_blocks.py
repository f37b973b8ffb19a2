"""Carried blocks: the blocks of an answer with their opaque state, as one text that a client sends back unread. Pure.

A message of this API has one thought, one text and a list of calls, in no order and without state of their own. Where an
answer has more than that, its blocks are told beside them, as a row of `reasoning_details`: the kind of each, how much of
the message's texts it is, and its state. The texts themselves stay where they are; if the client changed them, the blocks
do not fit any more, and count for nothing.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from smg_node.core.generation.events import BlockEnd
from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.core.generation.request import ToolCall, TurnBlock
from smg_node.dialects.chat.state.thought_details import DETAIL, ISSUER

PREFIX: Final = "smg1b."
"""How the text begins; base64 follows."""
CARRIED_MAX: Final = 1_048_576
"""It has at most so many characters: state of more is not carried."""
GOOGLE: Final = "google"
_BLOCKS_MAX: Final = 4_096
_Place: TypeAlias = Literal["text", "thought", "inline", "hidden", "refusal", "call"]
"""Where the text of a block is: of a thought in its field, in the content, or here, because the client is not shown it."""


class CarriedBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is kept of a block: `length` characters of what is at its place, or the `hidden` text; its state."""

    place: _Place
    length: int
    opaque: tuple[tuple[str, str, str, str], ...] = ()
    hidden: str = ""


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(list[CarriedBlock]).decode


def has_own_place(block: BlockEnd, *, on_calls: bool) -> bool:
    """Whether all state of a block has a place of its own in a message; `on_calls`: signatures stand on calls."""
    for one in block.opaque:
        signed = block.kind == "call" and one.issuer == GOOGLE and one.kind == SIGNATURE
        detailed = block.kind == "reasoning" and one.issuer == ISSUER and one.kind == DETAIL
        if not ((signed and on_calls) or detailed):
            return False
    return True


def carried(block: BlockEnd, *, shown: bool, apart: bool) -> CarriedBlock:
    """Return what is kept of a block. Of a thought: whether it is `shown` at all, and `apart` from the content."""
    place: _Place
    hidden = ""
    if block.kind == "reasoning":
        place = "hidden" if not shown else "thought" if apart else "inline"
        hidden = "" if shown else block.text
    else:
        place = block.kind
    rows = tuple((one.issuer, one.kind, one.data, one.label) for one in block.opaque)
    return CarriedBlock(place, len(block.text), rows, hidden)


def pack_blocks(blocks: list[CarriedBlock]) -> str:
    """Return the blocks of an answer as one text; "" if it would be too long."""
    try:
        raw = _encode(blocks)
    except UnicodeEncodeError:
        # Half a surrogate pair comes from no vendor.
        return ""
    packed = PREFIX + base64.b64encode(raw).decode()
    return packed if len(packed) <= CARRIED_MAX else ""


def unpack_blocks(
    packed: str, *, content: str, thought: str, refusal: str, calls: Sequence[ToolCall]
) -> tuple[TurnBlock, ...] | None:
    """Return the blocks of a message that came back; None if they do not fit it."""
    if len(packed) > CARRIED_MAX:
        return None
    try:
        rows = _decode(base64.b64decode(packed[len(PREFIX) :], validate=True))
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None
    return _Reader(content, thought, refusal, calls).read(rows)


class _Reader:
    """Cuts the texts of a message into blocks."""

    def __init__(self, content: str, thought: str, refusal: str, calls: Sequence[ToolCall]) -> None:
        self._texts = {"content": content, "thought": thought, "refusal": refusal}
        self._at = dict.fromkeys(self._texts, 0)
        self._calls = list(calls)

    def read(self, rows: list[CarriedBlock]) -> tuple[TurnBlock, ...] | None:
        """Return the blocks; None if anything is left over, or missing."""
        if len(rows) > _BLOCKS_MAX:
            return None
        blocks = list[TurnBlock]()
        for row in rows:
            block = self._call(row) if row.place == "call" else self._text(row)
            if block is None:
                return None
            blocks.append(block)
        over = any(self._at[name] != len(text) for name, text in self._texts.items())
        return None if over or self._calls else tuple(blocks)

    def _call(self, row: CarriedBlock) -> TurnBlock | None:
        if not self._calls:
            return None
        call = self._calls.pop(0)
        return TurnBlock("call", call.arguments, call.name, call.call_id, _opaque(row))

    def _text(self, row: CarriedBlock) -> TurnBlock | None:
        kind: Literal["text", "reasoning"] = (
            "text" if row.place in ("text", "refusal") else "reasoning"
        )
        if row.place == "hidden":
            return TurnBlock(kind, row.hidden, opaque=_opaque(row))
        name = row.place if row.place in self._texts else "content"
        start, end = self._at[name], self._at[name] + row.length
        if row.length < 0 or end > len(self._texts[name]):
            return None
        self._at[name] = end
        return TurnBlock(kind, self._texts[name][start:end], opaque=_opaque(row))


def _opaque(row: CarriedBlock) -> tuple[Opaque, ...]:
    return tuple(Opaque(*one) for one in row.opaque)


def is_carried(detail: Any) -> bool:
    """Whether a row of `reasoning_details` is blocks of ours."""
    data = detail.get("data") if isinstance(detail, dict) else None
    return isinstance(data, str) and data.startswith(PREFIX)
