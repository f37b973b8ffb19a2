"""Auth knobs: admin key file, and whether the data API needs a key."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from smg_node.config.schema.declaration import (
    Section,
    choice,
    number,
    place,
    text,
    words,
    words_by_name,
)
from smg_node.config.schema.suggestions import did_you_mean
from smg_node.config.sections.auth_issuers import TokenIssuer
from smg_node.core.access.permissions import BUILT_IN, PERMISSIONS, Permission, is_role_name

_RULES_MAX = 256
_ROLES_MAX = 64
_ISSUERS_MAX = 64
_KEYS_MAX = 1024
"""Keys that one node alone knows; more belong into the cluster (smg-admin keys import)."""
_KEY_MAX = 1024
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
_GAP = re.compile(r"\{(.*?)\}")
_TENANT = re.compile(r"[A-Za-z0-9._@{}-]{1,64}", re.ASCII)


def _rule_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:64]!r} is not such a name: small letters, digits and . _ -")
    return name


def _role_name(name: str) -> str:
    if not is_role_name(name):
        raise ValueError(
            f"{name[:64]!r} is not the name of a role: small letters, digits and . _ -"
        )
    if name in BUILT_IN:
        raise ValueError(f"{name} is built in and cannot be defined again")
    return name


class CertificateMapping(Section):
    """Whose certificate is worth what; the first rule that matches counts."""

    match: str = text(
        ...,
        "The certificate's name, such as spiffe://prod.example/ns/*/sa/web: each `*` stands for characters other than"
        " `/`. It is the first of SPIFFE URI, other URI, e-mail, DNS name, common name.",
        most=512,
        metavar="PATTERN",
    )
    role: str = text(
        "user",
        "What its holder may do: user, tenant_admin, operator, admin, or a role of auth.roles.",
        most=32,
        metavar="ROLE",
    )
    tenant: str = text(
        ...,
        "The tenant its holder belongs to; `{1}` is what the first `*` stood for.",
        most=64,
        metavar="TENANT",
    )

    @model_validator(mode="after")
    def _gaps_are_there(self) -> "CertificateMapping":
        if not _TENANT.fullmatch(self.tenant):
            raise ValueError(f"{self.tenant!r} is nothing that tenants can be called")
        stars = self.match.count("*")
        for gap in _GAP.findall(self.tenant):
            if not (gap.isdigit() and 1 <= int(gap) <= min(stars, 9)):
                raise ValueError(
                    f"{{{gap}}} in the tenant stands for no * of the pattern, which has {stars}"
                )
        return self


class Auth(Section):
    """Who may ask this node for what."""

    admin_key_file: Path | None = place(
        None,
        "File of admin keys that are good on this node whatever the cluster knows, one smg-ID-SECRET a line:"
        " to make the first keys with, and to get in again; `smg-admin keys generate` makes one.",
        metavar="FILE",
    )
    api_key: SecretStr | None = text(
        None,
        "A key that all clients of this node may use, as SMG's --api-key: with it the node needs keys. It may also"
        " administer, unless there is a key in control_plane_api_keys. Engines are sent workers.api_key.",
        most=_KEY_MAX,
        aliases=("--api-key",),
        metavar="KEY",
    )
    tenant_api_keys: tuple[SecretStr, ...] = words(
        (),
        "Keys of tenants, as SMG's --tenant-api-key: with one the node needs keys.",
        most=_KEYS_MAX,
        aliases=("--tenant-api-key",),
        metavar="TENANT:KEY",
    )
    control_plane_api_keys: tuple[SecretStr, ...] = words(
        (),
        "Keys that may administer (role admin) or ask for answers as tenant ID (role user), as SMG's"
        " --control-plane-api-keys.",
        most=_KEYS_MAX,
        aliases=("--control-plane-api-keys",),
        metavar="ID:NAME:ROLE:KEY",
    )
    data: Literal["auto", "open", "closed"] = choice(
        "auto",
        "Who may use the data API: `auto` everyone until an admin key exists and then whoever has a key,"
        " `open` everyone always, `closed` only whoever has a key.",
    )
    tenant_keys_max: int = number(
        200,
        "Keys that a tenant may have, expired ones too, for its administrators (tenant_admin) to make one more; whoever"
        " has the permission keys makes any number.",
        low=1,
        high=10_000,
        why="a cluster keeps 10,000 keys, those of all tenants",
    )

    certificates: dict[Annotated[str, AfterValidator(_rule_name)], CertificateMapping] = Field(
        default_factory=dict, max_length=_RULES_MAX
    )
    roles: dict[Annotated[str, AfterValidator(_role_name)], tuple[str, ...]] = words_by_name(
        "Own roles, beside user, tenant_admin, operator and admin: the permissions of each. Every node needs them, or the"
        " cluster defines them (smg-admin access define-role); a key of a role that is not known opens nothing.",
        most=_ROLES_MAX,
        metavar="PERMISSION",
    )
    issuer_files: tuple[str, ...] = words(
        (),
        "Files of this node that issuers defined in the cluster may name (token_file, authority, client_secret_file);"
        " what is in them goes to servers of their choice. Those of this node's own settings need no mention.",
        most=64,
        metavar="FILE",
    )
    issuers: dict[Annotated[str, AfterValidator(_rule_name)], TokenIssuer] = Field(
        default_factory=dict, max_length=_ISSUERS_MAX
    )

    @field_validator("issuer_files")
    @classmethod
    def _spelled_as_issuers_spell(cls, files: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(Path(file).expanduser()) for file in files)

    @model_validator(mode="after")
    def _issuers_fit(self) -> "Auth":
        known = (*BUILT_IN, *self.roles)
        asked = [alias for alias, one in self.issuers.items() if one.introspection.url]
        if len(asked) > 1:
            raise ValueError(
                f"issuers.{asked[0]} and issuers.{asked[1]} have an introspection: tokens that cannot be read do not say"
                " whose they are, so one issuer can be asked about them"
            )
        named: dict[str, str] = {}
        for alias, one in self.issuers.items():
            other = named.setdefault(one.issuer, alias)
            if other != alias:
                raise ValueError(f"issuers.{other} and issuers.{alias} are the same issuer")
            for name, role in one.role_map.items():
                if role not in known:
                    raise ValueError(
                        f"issuers.{alias}.role_map[{name!r}]: there is no role {role!r}{did_you_mean(role, known)};"
                        f" there are {', '.join(known)}"
                    )
        return self

    @property
    def gives_keys(self) -> bool:
        """Whether there are keys in these settings, so that the node needs one."""
        return bool(self.api_key or self.tenant_api_keys or self.control_plane_api_keys)

    @field_validator("admin_key_file")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path.expanduser() if path is not None else None

    @field_validator("roles")
    @classmethod
    def _permissions_are_known(
        cls, roles: dict[str, tuple[str, ...]]
    ) -> dict[str, tuple[Permission, ...]]:
        read: dict[str, tuple[Permission, ...]] = {}
        for name, given in roles.items():
            if not given:
                raise ValueError(f"role {name} has no permissions")
            for word in given:
                if word not in PERMISSIONS:
                    hint = did_you_mean(word, PERMISSIONS)
                    raise ValueError(
                        f"role {name}: there is no permission {word[:64]!r}{hint}; there are"
                        f" {', '.join(PERMISSIONS)}"
                    )
            read[name] = tuple(one for one in PERMISSIONS if one in given)
        return read

    @model_validator(mode="after")
    def _roles_of_certificates_are_known(self) -> "Auth":
        known = (*BUILT_IN, *self.roles)
        for name, rule in self.certificates.items():
            if rule.role not in known:
                hint = did_you_mean(rule.role, known)
                raise ValueError(
                    f"certificates.{name}.role: there is no role {rule.role!r}{hint}; there are {', '.join(known)}"
                )
        return self
