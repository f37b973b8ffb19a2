"""Issuer of tokens as an operator configured it, as plain values: whom it is for, and what its claims are worth.

An issuer is known by the text of its `iss` claim, byte for byte: with and without a slash at the end are two.
"""

from dataclasses import dataclass
from typing import Final

from smg_node.access.identity import Role
from smg_node.access.roles import BUILT_IN_ROLES, Roles
from smg_node.config.token_forms import SIGNATURES, TOKEN_TYPES

LEEWAY_S: Final = 30.0
KEYS_MAX_AGE_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Introspection:
    """Where tokens that cannot be read are asked about (RFC 7662), and the credentials for that."""

    url: str
    client_id: str
    client_secret_file: str


@dataclass(frozen=True, slots=True)
class Issuer:
    """One issuer. Pointers are JSON Pointers (RFC 6901) into the claims, "" for none; paths may be "" for none."""

    alias: str
    """The operator's short name of it: logs, metrics and the audit log say this one."""
    issuer: str
    """What its tokens have as `iss`, to the byte; also where its discovery document is."""
    audiences: tuple[str, ...]
    """One of them must be in a token's `aud`."""
    roles: str = ""
    """Pointer to a text (split at blanks), a list of texts, or a map whose names count."""
    role_map: tuple[tuple[str, Role], ...] = ()
    """What a role there is worth here: `*` in a name stands for any characters, `*` alone for a token without roles
    too. The best one counts.
    """
    tenant: str = ""
    """Pointer to the tenant's name."""
    tenant_fixed: str = ""
    """The tenant of all its tokens; instead of the pointer."""
    tenant_prefix: str = ""
    """Put before what the pointer finds."""
    algorithms: tuple[str, ...] = SIGNATURES
    token_types: tuple[str, ...] = TOKEN_TYPES
    leeway_s: float = LEEWAY_S
    """How far clocks may differ."""
    keys_url: str = ""
    """Where its key set is; "": where its discovery document says."""
    authority: str = ""
    """File of the authorities that its TLS certificate may come from; "": those this machine trusts."""
    token_file: str = ""
    """File of a bearer token to fetch its keys with."""
    keys_max_age_s: float = KEYS_MAX_AGE_S
    """So long its last keys stay good while it cannot be reached."""
    introspection: Introspection | None = None
    known_roles: Roles = BUILT_IN_ROLES
    """What the roles of `role_map` may."""
