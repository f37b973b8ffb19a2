"""Pins of tools: short digests of what a server says of each, which tell a changed tool from the one that was meant.

What a tool is called, says of itself and takes is text of a stranger, and models read it as prompt: a server that was
fine when an operator looked may say something else tomorrow. Pure.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.mcp.server_spec import ServerSpec

_PIN_BYTES: Final = 9
"""72 bits: nobody makes another description with the same ones, and 512 of them fit a definition."""
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def pin_of(
    name: str, description: str, schema: Mapping[str, Any], annotations: Mapping[str, Any]
) -> str:
    """Return the pin of a tool, 12 characters; in which order its schema has its keys makes no difference."""
    told = _encode([name, description, schema, annotations])
    return base64.urlsafe_b64encode(hashlib.blake2b(told, digest_size=_PIN_BYTES).digest()).decode()


def is_changed(
    spec: ServerSpec,
    name: str,
    description: str,
    schema: Mapping[str, Any],
    annotations: Mapping[str, Any],
) -> bool:
    """Whether a tool is none of those that the operator pinned; none is, of a server that is not pinned."""
    return spec.pin and pin_of(name, description, schema, annotations) not in spec.pinned
