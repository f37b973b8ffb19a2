"""Signatures of thoughts as `thoughtSignature`: our seal, in standard base64 and nothing else.

The API's clients hold a signature as bytes and write it in either alphabet of base64, with or without
padding. So the prefix of our seals, which is no base64, stays here.
"""

from typing import Final

from smg_node.dialects.thought_seals import SEALED, ThoughtSeals

_STANDARD: Final = str.maketrans("-_", "+/")


def signature_of(thought: str, seals: ThoughtSeals, *, tenant: str, model: str) -> str:
    """Return a signature that carries the thought."""
    return seals.seal(thought, tenant=tenant, model=model).removeprefix(SEALED)


def thought_in(signature: str, seals: ThoughtSeals, *, tenant: str, model: str) -> str | None:
    """Return the thought that a signature carries; None for one that is not ours, or another's."""
    digits = signature.translate(_STANDARD).rstrip("=")
    padding = "=" * (-len(digits) % 4)
    return seals.opened(SEALED + digits + padding, tenant=tenant, model=model)
