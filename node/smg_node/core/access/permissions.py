"""Permissions: what a caller may do, one word for each group of routes.

Every route needs exactly one of them. Those that end in `.own` are for what belongs to the caller's own
tenant: its keys, its limits, its usage. `look` is for all that operators only look at; behind it comes a
word for each noun that can be changed. Pure.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final, Literal, TypeAlias, get_args

Access: TypeAlias = Literal["public", "data", "view", "admin"]
"""Groups of routes: for anyone; for tenants; for those who look; for those who change."""
_Data: TypeAlias = Literal["generate", "history", "models", "tools.use", "usage.own"]
_Own: TypeAlias = Literal["keys.own", "limits.own"]
_View: TypeAlias = Literal["look"]
_Admin: TypeAlias = Literal[
    "workers", "engines", "settings", "limits", "keys", "members", "keyring", "sessions", "parsers", "access",
    "providers", "prices", "tools", "approvals",
]  # fmt: skip
Permission: TypeAlias = _Data | _Own | _View | _Admin
Needed: TypeAlias = Literal["public"] | Permission
"""What a route needs; `public` is nothing."""

DATA: Final[tuple[Permission, ...]] = get_args(_Data)
OWN: Final[tuple[Permission, ...]] = get_args(_Own)
VIEW: Final[tuple[Permission, ...]] = get_args(_View)
ADMIN: Final[tuple[Permission, ...]] = get_args(_Admin)
PERMISSIONS: Final[tuple[Permission, ...]] = (*DATA, *OWN, *VIEW, *ADMIN)
TENANTS: Final = frozenset((*DATA, *OWN))
"""Those that reach nothing beyond the caller's own tenant."""
ACCESS: Final[Mapping[Needed, Access]] = {
    "public": "public",
    **dict.fromkeys(DATA, "data"),
    **dict.fromkeys(VIEW, "view"),
    **dict.fromkeys((*OWN, *ADMIN), "admin"),
}
"""Which group of routes a permission opens."""

BUILT_IN: Final[Mapping[str, frozenset[Permission]]] = {
    "user": frozenset(DATA),
    "tenant_admin": TENANTS,
    "operator": frozenset((*DATA, *VIEW)),
    "admin": frozenset(PERMISSIONS),
}
"""The roles that are always there."""
_ROLE_NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,31}", re.ASCII)


def is_role_name(name: str) -> bool:
    """Whether a role can be called so: a small letter, and at most 31 more, or digits, or any of `_ . -`."""
    return _ROLE_NAME.fullmatch(name) is not None


def may_any(held: Collection[Permission], *needed: Permission | None) -> bool:
    """Whether one of these permissions is held."""
    return any(one in held for one in needed if one is not None)
