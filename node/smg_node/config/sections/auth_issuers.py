"""Auth issuers knobs: whose signed tokens are taken, and what their claims are worth."""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import field_validator, model_validator

from smg_node.config.schema.declaration import Section, mapping, number, place, text, words
from smg_node.config.token_forms import SIGNATURES, TOKEN_TYPES

_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)+")
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_ANY = "*"
_AUDIENCES_MAX = 32
_ROLES_MAX = 256
_OF_TENANTS = frozenset({"user", "tenant_admin"})
"""Roles that need no tenant."""


class TokenIntrospection(Section):
    """Where an issuer is asked about tokens that cannot be read (RFC 7662)."""

    url: str = text("", "URL of its introspection endpoint.", most=2048, metavar="URL")
    client_id: str = text("", "The client that this node is to the issuer.", most=256)
    client_secret_file: Path | None = place(None, "File of that client's secret.", metavar="FILE")

    @field_validator("url")
    @classmethod
    def _safe(cls, url: str) -> str:
        return _checked_url(url) if url else url

    @field_validator("client_secret_file")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path if path is None else path.expanduser()

    @model_validator(mode="after")
    def _whole(self) -> "TokenIntrospection":
        given = [bool(self.url), bool(self.client_id), self.client_secret_file is not None]
        if any(given) and not all(given):
            raise ValueError("introspection needs url, client_id and client_secret_file together")
        return self


class TokenIssuer(Section):
    """Whose signed tokens (JWT) are taken, and what their claims are worth."""

    issuer: str = text(
        ...,
        "What its tokens have as `iss`, to the byte, and the URL that its discovery document is found below.",
        most=512,
        metavar="URL",
        shown="required",
    )
    audiences: tuple[str, ...] = words(
        (),
        "Names of this gateway, one of which a token's `aud` must have.",
        most=_AUDIENCES_MAX,
        metavar="NAME",
    )
    roles: str = text(
        "",
        "JSON Pointer to a token's roles, such as /realm_access/roles: a text of words, a list, or a map whose names count.",
        most=512,
        metavar="POINTER",
    )
    role_map: dict[str, str] = mapping(
        "What a token's role is worth here; `*` in its name stands for any characters, `*` alone for every good token."
        " The best one counts.",
        most=_ROLES_MAX,
        metavar="ROLE",
    )
    tenant: str = text(
        "", "JSON Pointer to the tenant's name, such as /azp.", most=512, metavar="POINTER"
    )
    tenant_fixed: str = text(
        "", "The tenant of all its tokens, instead.", most=64, metavar="TENANT"
    )
    tenant_prefix: str = text(
        "", "Put before the name that `tenant` finds, against clashes with others.", most=32
    )
    algorithms: tuple[str, ...] = words(
        SIGNATURES, "Signatures that are taken.", most=len(SIGNATURES), metavar="NAME"
    )
    token_types: tuple[str, ...] = words(
        TOKEN_TYPES,
        "What the header `typ` of a token may say; `none` is a token without it.",
        most=len(TOKEN_TYPES),
        metavar="NAME",
    )
    leeway_s: float = number(
        30.0,
        "Seconds by which its clock and this node's may differ.",
        low=0,
        high=300,
        why="0 is for one clock; after five minutes it is no difference of clocks any more",
    )
    keys_url: str = text(
        "",
        "URL of its key set, instead of what its discovery document says.",
        most=2048,
        metavar="URL",
    )
    authority: Path | None = place(
        None,
        "File of the authorities its TLS certificate may come from, instead of those this machine trusts.",
        metavar="FILE",
    )
    token_file: Path | None = place(
        None, "File of a bearer token to fetch its keys with, as Kubernetes wants.", metavar="FILE"
    )
    keys_max_age_s: float = number(
        86_400.0,
        "Seconds for which its last keys stay good while it cannot be reached.",
        low=300,
        high=2_592_000,
        why="below five minutes each hiccup of it would be one of this node; a month is long for a revoked key",
    )
    introspection: TokenIntrospection = TokenIntrospection()

    @field_validator("authority", "token_file")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path if path is None else path.expanduser()

    @field_validator("roles", "tenant")
    @classmethod
    def _pointer(cls, pointer: str) -> str:
        if pointer and not _POINTER.fullmatch(pointer):
            raise ValueError(f"{pointer[:64]!r} is not a JSON Pointer such as /realm_access/roles")
        return pointer

    @field_validator("keys_url")
    @classmethod
    def _safe(cls, url: str) -> str:
        return _checked_url(url) if url else url

    @field_validator("audiences")
    @classmethod
    def _audiences(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not all(0 < len(name) <= 512 for name in names):
            raise ValueError("an audience is a text of 1 to 512 characters")
        if _ANY in names:
            raise ValueError(
                "there is no wildcard for audiences: name what tokens for this gateway have as `aud`"
            )
        return names

    @field_validator("algorithms")
    @classmethod
    def _signatures(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _among(names, SIGNATURES)

    @field_validator("token_types")
    @classmethod
    def _types(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _among(names, TOKEN_TYPES)

    @model_validator(mode="after")
    def _fits(self) -> "TokenIssuer":
        if not self.issuer.isprintable() or not self.issuer:
            raise ValueError("issuer must be a printable text")
        if not self.keys_url:
            _checked_url(self.issuer)
        if not self.audiences:
            raise ValueError("audiences must name what tokens for this gateway have as `aud`")
        if not self.role_map:
            raise ValueError(
                "role_map must say what a token's roles are worth; `*` is every good token"
            )
        if not self.roles and set(self.role_map) != {_ANY}:
            raise ValueError("role_map names roles, and roles does not say where tokens have them")
        self._check_tenant()
        return self

    def _check_tenant(self) -> None:
        if self.tenant and self.tenant_fixed:
            raise ValueError("tenant and tenant_fixed exclude each other")
        if self.tenant_prefix and not self.tenant:
            raise ValueError("tenant_prefix needs tenant")
        for name in (self.tenant_fixed, self.tenant_prefix):
            if name and not _TENANT.fullmatch(name):
                raise ValueError(f"{name!r} is nothing that tenants can be called")
        if not _OF_TENANTS.isdisjoint(self.role_map.values()) and not (
            self.tenant or self.tenant_fixed
        ):
            raise ValueError(
                "users need a tenant: tenant says where tokens have it, tenant_fixed names one for all"
            )


def _among(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    if not names:
        raise ValueError(f"it must name at least one of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise ValueError(f"{name[:64]!r} is none of {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def _checked_url(url: str) -> str:
    """Return an URL of https, or of http to this machine; ValueError otherwise."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        raise ValueError(f"{url[:120]!r} is not a URL") from None
    if "@" in parts.netloc or parts.fragment or not url.isprintable() or " " in url:
        raise ValueError(f"{parts.scheme}://{host} must have no user name, fragment or blanks")
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)):
        raise ValueError(
            f"{url[:120]!r} must begin with https://, or http:// and this machine's own address"
        )
    return url
