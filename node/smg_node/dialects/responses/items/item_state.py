"""Item state: opaque state of vendors in the signature of a reasoning item. Pure.

base64 of a seal        ours, which carries a thought that was not shown
base64 of an envelope   state of any vendor, and perhaps a seal
anything else           Google's own
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.dialects.opaque_envelope import PREFIX, Envelope, pack, unpack

PHASE: Final = "phase"
"""Opaque state of a message: whether it is the answer or a comment on the way there."""
PHASES: Final = ("commentary", "final_answer")
LAST: Final = "last"
"""Place of state that stands on the item before the one that carries it."""
_ISSUER: Final = "google"
_OURS: Final = "smg1"


def signature_with(opaque: tuple[Opaque, ...], seal: str = "", place: str = "") -> str:
    """Return the signature that carries this state: Google's own as it is, "" for too much state."""
    if len(opaque) == 1 and not seal and not place:
        [only] = opaque
        if (only.issuer, only.kind) == (_ISSUER, SIGNATURE):
            return only.data
    packed = pack(opaque, seal, place)
    return base64.b64encode(packed.encode()).decode() if packed else ""


def seal_in(signature: str) -> str | None:
    """Return the seal that a signature carries; None for none."""
    text = _text(signature)
    if text is None or not text.startswith(PREFIX):
        return text
    envelope = unpack(text)
    return envelope.thought if envelope is not None and envelope.thought else None


def state_of(values: Mapping[str, Any]) -> Envelope | None:
    """Return the state in an item; None for none."""
    signature = values.get("signature")
    if type(signature) is not str or not signature:
        return None
    text = _text(signature)
    if text is not None and text.startswith(_OURS):
        return unpack(text)
    return Envelope((Opaque(_ISSUER, SIGNATURE, signature),))


def _text(signature: str) -> str | None:
    """Return what a signature spells in base64; None if it spells none."""
    try:
        return base64.b64decode(signature, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return None
