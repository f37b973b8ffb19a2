"""Opaque envelope: opaque state of any issuer as one text, for a field in which an API carries its own unread. Pure.

A client of one API that is answered by the model of another sends back what it was given. So state that the API has no
place for travels in one that it has, as a signature or an encrypted thought, and is read again when it returns. It is
encoded, not sealed: only its issuer can use it, and refuses it if it was changed.
"""

import base64
from typing import Final

import msgspec

from smg_node.core.generation.opaque import Opaque

PREFIX: Final = "smg1o."
"""How an envelope begins; base64 follows."""
ENVELOPE_MAX: Final = 262_144
"""An envelope has at most so many characters: the largest state that was seen has 42 KB."""


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """What an envelope holds. `thought` is a text that the client was not shown, or not as it is. `place` is the name
    that its maker has for what the state stands on, "" for the block that carries the envelope.
    """

    opaque: tuple[Opaque, ...]
    thought: str = ""
    place: str = ""


_Row = tuple[str, str, str, str]


class _Packed(msgspec.Struct, frozen=True, array_like=True, tag="opaque", gc=False):
    rows: tuple[_Row, ...]
    thought: str
    place: str


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Packed).decode


def pack(opaque: tuple[Opaque, ...], thought: str = "", place: str = "") -> str:
    """Return an envelope, without the thought if it would be too large with it; "" if it is too large all the same."""
    rows = tuple((one.issuer, one.kind, one.data, one.label) for one in opaque)
    for text in (thought, "") if thought else ("",):
        try:
            raw = _encode(_Packed(rows, text, place))
        except UnicodeEncodeError:
            # Half a surrogate pair comes from no vendor.
            return ""
        packed = PREFIX + base64.b64encode(raw).decode()
        if len(packed) <= ENVELOPE_MAX:
            return packed
    return ""


def unpack(text: str) -> Envelope | None:
    """Return what an envelope holds; None for any other text."""
    if not text.startswith(PREFIX) or len(text) > ENVELOPE_MAX:
        return None
    try:
        packed = _decode(base64.b64decode(text[len(PREFIX) :], validate=True))
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None
    return Envelope(tuple(Opaque(*row) for row in packed.rows), packed.thought, packed.place)
