"""Signatures as `thoughtSignature`: Google's own, those that carry a thought, those that carry other vendors' state.

The API's clients hold a signature as bytes and write it in either alphabet of base64, with or without padding. So all
are bytes in standard base64: the prefixes of our seals and envelopes, which are none, stay here.

    a seal           carries a thought that its client was not shown
    an envelope      carries opaque state, and perhaps a seal
    anything else    is Google's own
"""

import re
from typing import Final, NamedTuple

from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.dialects.opaque_envelope import PREFIX, pack, unpack
from smg_node.dialects.thought_seals import SEALED, ThoughtSeals

ISSUER: Final = "google"
STAND_IN: Final = "skip_thought_signature_validator"
"""What Google takes for the signature of a call that another model made, or whose signature was lost."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}", re.ASCII)
_STANDARD: Final = str.maketrans("-_", "+/")


def signature_of(thought: str, seals: ThoughtSeals, *, tenant: str, model: str) -> str:
    """Return a signature that carries the thought."""
    return seals.seal(thought, tenant=tenant, model=model).removeprefix(SEALED)


def thought_in(signature: str, seals: ThoughtSeals, *, tenant: str, model: str) -> str | None:
    """Return the thought that a signature carries; None for one that is not ours, or another's."""
    return seals.opened(SEALED + standard(signature), tenant=tenant, model=model)


def standard(signature: str) -> str:
    """Return a signature as its maker wrote it, in the standard alphabet and with padding."""
    digits = signature.translate(_STANDARD).rstrip("=")
    return digits + "=" * (-len(digits) % 4)


class State(NamedTuple):
    """Opaque state that a signature carries, and the seal in it, "" for none."""

    opaque: tuple[Opaque, ...]
    seal: str = ""


def is_googles(state: State) -> bool:
    """Whether this state is a signature of Google's and nothing else."""
    if len(state.opaque) != 1 or state.seal:
        return False
    return state.opaque[0].issuer == ISSUER and state.opaque[0].kind == SIGNATURE


def signature_with(state: State) -> str:
    """Return the signature that carries this state: Google's own where there is nothing else, "" for too much of it."""
    if is_googles(state):
        return state.opaque[0].data
    return pack(state.opaque, state.seal).removeprefix(PREFIX)


def state_in(signature: str) -> State:
    """Return the state that a signature carries, which is no seal; none for one that says to skip it, or is no base64."""
    digits = standard(signature)
    if digits == standard(STAND_IN) or not _BASE64.fullmatch(digits):
        return State(())
    envelope = unpack(PREFIX + digits)
    if envelope is not None:
        return State(envelope.opaque, envelope.thought)
    return State((Opaque(ISSUER, SIGNATURE, digits),))
