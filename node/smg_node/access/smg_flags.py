"""SMG flags: keys as that gateway takes them on its command line, `TENANT:KEY` and `ID:NAME:ROLE:KEY`. Pure."""

import re
from dataclasses import dataclass
from typing import Final

from smg_node.access.foreign_key import CHARACTERS_ADVISED, sha256_of, why_no_foreign_key
from smg_node.access.identity import Role

SHARED_TENANT: Final = "default"
"""Tenant of the one key that SMG's `--api-key` is: its owners are nobody in particular."""
NAME_CHARACTERS_MAX: Final = 64
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class GivenKey:
    """A key of another gateway, by its SHA-256. `short`: somebody could guess it."""

    sha256: bytes
    tenant: str
    role: Role
    name: str
    short: bool


class GivenKeyError(ValueError):
    """A value that gives no key; `part` is the part of it that will not do, "" for its form. It never holds a key."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


def tenant_key(value: str) -> GivenKey:
    """Return the key of a `TENANT:KEY`, of role user; GivenKeyError."""
    tenant, colon, key = value.partition(":")
    if not colon:
        raise GivenKeyError("", "it is not TENANT:KEY")
    return _given(key, _tenant(tenant, "TENANT"), "user", "")


def control_plane_key(value: str) -> GivenKey:
    """Return the key of an `ID:NAME:ROLE:KEY`; GivenKeyError. One of role user belongs to the tenant ID."""
    parts = value.split(":", 3)
    if len(parts) != 4:
        raise GivenKeyError("", "it is not ID:NAME:ROLE:KEY")
    key_id, name, role, key = parts
    if role == "admin":
        return _given(key, "", "admin", name or key_id)
    if role == "user":
        return _given(key, _tenant(key_id, "ID"), "user", name)
    raise GivenKeyError("ROLE", "its role is neither admin nor user")


def shared_key(key: str, role: Role) -> GivenKey:
    """Return the one key that all clients have; GivenKeyError."""
    return _given(key, SHARED_TENANT, role, "api key")


def printable_name(text: str) -> str:
    """Return a name as the cluster keeps it: printable ASCII, cut to 64 characters."""
    return "".join(one if " " <= one <= "~" else "?" for one in text)[:NAME_CHARACTERS_MAX]


def _given(key: str, tenant: str, role: Role, name: str) -> GivenKey:
    if why := why_no_foreign_key(key):
        raise GivenKeyError("KEY", why)
    short = len(key) < CHARACTERS_ADVISED
    return GivenKey(sha256_of(key), tenant, role, printable_name(name), short)


def _tenant(text: str, part: str) -> str:
    if not _TENANT.fullmatch(text):
        raise GivenKeyError(
            part, "a tenant is 1 to 64 letters, digits and . _ @ -, a letter or digit first"
        )
    return text
