"""Names in certificates: of a node, and of its mesh.

A node may be called what DNS would not: `_a`, `..`, `10.0.0.1`. Underscores and hyphens anywhere
pass the verification of gRPC as they are (tried); empty labels are refused or, at the end, ignored
by it, and addresses are compared with other fields. Names of that kind, and labels with other
characters, stand in certificates as a digest. So do names that begin as those of meshes do: all
members carry the mesh's name, and it must not do as a node's own.
"""

import ipaddress
import re
from hashlib import blake2b
from typing import Final

_MESH: Final = "mesh."
_DIGEST_BYTES: Final = 16
_PLAIN: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_PLAIN_MAX: Final = 200  # of the 253 that a DNS name may have


def dns_name(name: str) -> str:
    """Return how `name` stands in certificates: itself, or `name-` and a digest where DNS has no such name."""
    plain = len(name) <= _PLAIN_MAX and _PLAIN.fullmatch(name) is not None
    if plain and not name.startswith(_MESH) and not _is_address(name):
        return name
    return f"name-{blake2b(name.encode(), digest_size=_DIGEST_BYTES).hexdigest()}"


def mesh_name(label: str) -> str:
    """Return the name that every member of the mesh `label` has beside its own."""
    return _MESH + dns_name(label)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
