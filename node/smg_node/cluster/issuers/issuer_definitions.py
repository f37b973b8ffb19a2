"""Issuer definitions: issuers of this node's own settings and those of the cluster as one, and the check of a new one.

A definition of the cluster counts in place of a configured issuer of the same name. One that this release cannot read
whole is not followed, and none of its tokens is taken: what is not known of it might have narrowed what they are worth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from smg_mesh.shared import AccessDefinition
from smg_node.access.roles import BUILT_IN_ROLES, Roles
from smg_node.access.tokens.issuer import (
    KEYS_MAX_AGE_S,
    LEEWAY_S,
    Introspection,
    Issuer,
)
from smg_node.config.token_forms import SIGNATURES, TOKEN_TYPES
from smg_node.core.errors import invalid

ISSUERS_MAX: Final = 64
CODE: Final = "invalid_issuer"


class _Asked(msgspec.Struct, forbid_unknown_fields=True):
    url: str = ""
    client_id: str = ""
    client_secret_file: str | None = None


class _Fields(msgspec.Struct, forbid_unknown_fields=True):
    """A definition, as `config.sections.auth_issuers.TokenIssuer` writes it."""

    issuer: str
    audiences: tuple[str, ...]
    role_map: dict[str, str]
    roles: str = ""
    tenant: str = ""
    tenant_fixed: str = ""
    tenant_prefix: str = ""
    algorithms: tuple[str, ...] = SIGNATURES
    token_types: tuple[str, ...] = TOKEN_TYPES
    leeway_s: float = LEEWAY_S
    keys_url: str = ""
    authority: str | None = None
    token_file: str | None = None
    keys_max_age_s: float = KEYS_MAX_AGE_S
    introspection: _Asked = msgspec.field(default_factory=_Asked)


@dataclass(frozen=True, slots=True)
class Definitions:
    """The issuers that count, by name, and why definitions of the cluster do not, by name."""

    issuers: Mapping[str, Issuer]
    unreadable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeTerms:
    """What this node's own settings say of definitions: which files they may name, and which roles there are."""

    files: frozenset[str] = frozenset()
    roles: Roles = BUILT_IN_ROLES


def merged(
    own: Sequence[Issuer], shared: Sequence[AccessDefinition], terms: NodeTerms
) -> Definitions:
    """Return what counts on a node with these settings, and these definitions of the cluster."""
    issuers = {one.alias: one for one in own}
    unreadable: dict[str, str] = {}
    for definition in shared:
        try:
            issuers[definition.alias] = read_definition(definition.alias, definition.value, terms)
        except ValueError as error:
            # Its tokens may be worth less than the node's own file says.
            issuers.pop(definition.alias, None)
            unreadable[definition.alias] = str(error)
    named: dict[str, str] = {}
    for alias, issuer in list(issuers.items()):
        other = named.setdefault(issuer.issuer, alias)
        if other != alias:
            del issuers[alias]
            unreadable[alias] = f"it is the same issuer as {other}"
    return Definitions(issuers, unreadable)


def read_definition(alias: str, value: object, terms: NodeTerms) -> Issuer:
    """Return the issuer that a definition means; ValueError for one that is not understood whole, or names a file that
    the node does not lend: what is in it goes to a server of the definition's choice.
    """
    try:
        said = msgspec.convert(value, _Fields)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    strange = sorted({role for role in said.role_map.values() if role not in terms.roles.names})
    if strange:
        raise ValueError(f"role_map names {strange[0][:64]!r}, which is no role here")
    asked = said.introspection
    files = {
        "authority": said.authority,
        "token_file": said.token_file,
        "introspection.client_secret_file": asked.client_secret_file,
    }
    for field, file in files.items():
        if file and file not in terms.files:
            raise ValueError(f"{field}: {file[:256]!r} is none of this node's auth.issuer_files")
    return Issuer(
        alias=alias,
        issuer=said.issuer,
        audiences=said.audiences,
        roles=said.roles,
        role_map=tuple(said.role_map.items()),
        tenant=said.tenant,
        tenant_fixed=said.tenant_fixed,
        tenant_prefix=said.tenant_prefix,
        algorithms=said.algorithms,
        token_types=said.token_types,
        leeway_s=said.leeway_s,
        keys_url=said.keys_url,
        authority=said.authority or "",
        token_file=said.token_file or "",
        keys_max_age_s=said.keys_max_age_s,
        introspection=Introspection(asked.url, asked.client_id, asked.client_secret_file or "")
        if asked.url
        else None,
        known_roles=terms.roles,
    )


def checked_definition(alias: str, body: Mapping[str, Any], terms: NodeTerms) -> dict[str, Any]:
    """Return a definition as it is kept; INVALID_REQUEST names the field that is wrong.

    It is checked as the settings are, by their own declaration: that library is loaded with the first definition that an
    operator sends, and is slow to load. Call it in a thread.
    """
    from pydantic import ValidationError

    from smg_node.config.sections.auth_issuers import TokenIssuer

    try:
        said = TokenIssuer(**{name: _plain(value) for name, value in body.items()})
        kept: dict[str, Any] = said.model_dump(mode="json", exclude_unset=True)
        read_definition(alias, kept, terms)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in detail["loc"]) or None
        why = detail["msg"].removeprefix("Value error, ")
        raise invalid(f"{where or 'the issuer'}: {why}", where, CODE) from None
    except (ValueError, TypeError) as error:
        raise invalid(str(error), None, CODE) from None
    return kept


def _plain(value: Any) -> Any:
    """Return a value of JSON as settings have it: lists of words do not change."""
    return tuple(value) if isinstance(value, list) else value
