"""Redacted thoughts: what Bedrock has as bytes, and Anthropic's own API as the text that these bytes are. Pure.

So a thought that one of them has redacted can be given to the other one.
"""

import base64
import binascii
from collections.abc import Iterable

from smg_node.dialects.converse.vendor_answer import ANTHROPIC, broken


def read_redacted(pieces: Iterable[str], issuer: str) -> str:
    """Return the opaque state in `redactedContent`, each piece in base64; "" for none.

    For Anthropic it is as in its own API, for others base64 of all bytes.
    """
    said = [piece for piece in pieces if piece]
    if not said:
        return ""
    try:
        whole = b"".join(base64.b64decode(piece, validate=True) for piece in said)
        return whole.decode() if issuer == ANTHROPIC else base64.b64encode(whole).decode()
    except (binascii.Error, ValueError) as error:
        raise broken("the vendor's answer has a redacted thought that cannot be read") from error


def write_redacted(data: str, issuer: str) -> str:
    """Return `redactedContent` of that opaque state, in base64 as it goes out."""
    return base64.b64encode(data.encode()).decode() if issuer == ANTHROPIC else data
