"""Key values: tenant, role, name, end and digest of a key, read from the text of a field. Pure."""

import re
from datetime import UTC, datetime
from typing import Final

from smg_node.access.foreign_key import CHARACTERS_ADVISED, sha256_of, why_no_foreign_key
from smg_node.admin.key_files.key_row import RowError
from smg_node.core.access.permissions import BUILT_IN, is_role_name

_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_OF_TENANTS: Final = frozenset({"user", "tenant_admin"})
_SHA256: Final = re.compile(r"[0-9A-Fa-f]{64}", re.ASCII)
_SHOWN_MAX: Final = 40
_YEAR_MAX: Final = 9_000
"""Times beyond are never, whatever the zone makes of them."""
_NEVER: Final = frozenset({"", "null", "none", "never"})


def tenant_of(text: str, role: str, column: str = "tenant") -> str:
    """Return a tenant, which a key of role user or tenant_admin must have."""
    if not text and role not in _OF_TENANTS:
        return ""
    if not text:
        raise RowError(
            column, f"a key of role {role} belongs to a tenant, and none is given (--tenant)"
        )
    if not _TENANT.fullmatch(text):
        raise RowError(
            column,
            f"{shown(text)} is no tenant: 1 to 64 letters, digits and . _ @ -, a letter or digit first",
        )
    return text


def role_of(text: str, column: str = "role") -> str:
    """Return a role, user where none is said. Whether there is such a role of an operator's own the node knows."""
    role = text.lower() or "user"
    if not is_role_name(role):
        raise RowError(
            column, f"{shown(text)} is no role: {', '.join(BUILT_IN)}, or one of auth.roles"
        )
    return role


def sha256_text(text: str, column: str = "sha256") -> str:
    """Return the SHA-256 of a key in hexadecimal."""
    if not _SHA256.fullmatch(text):
        raise RowError(column, "not 64 hexadecimal digits, which the SHA-256 of a key is")
    return text.lower()


def key_sha256(key: str, column: str = "key") -> tuple[str, bool]:
    """Return the SHA-256 of a plain key, and whether it is short; the key itself is in no message."""
    if why := why_no_foreign_key(key):
        raise RowError(column, why)
    return sha256_of(key).hex(), len(key) < CHARACTERS_ADVISED


def expires_of(text: str, column: str = "expires") -> int | None:
    """Return the end of a key in Unix milliseconds, None for never: a date or time of ISO 8601, UTC if it says no zone."""
    if text.lower() in _NEVER:
        return None
    try:
        said = datetime.fromisoformat(_whole_fraction(text))
    except ValueError:
        raise RowError(
            column, f"{shown(text)} is no time such as 2027-01-31T12:00:00Z, and no date"
        ) from None
    if not 1971 <= said.year <= _YEAR_MAX:
        raise RowError(column, f"{shown(text)} is no time of ours")
    moment = said if said.tzinfo is not None else said.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def shown(text: str) -> str:
    """Return a value as a message may show it: short and printable."""
    return repr(text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…")


def _whole_fraction(text: str) -> str:
    """Return a time as the library reads it: PostgreSQL writes `+00` for its zone, and it may leave zeros out."""
    zoned = re.fullmatch(r"(.*[0-9]{2}:[0-9]{2}.*[+-][0-9]{2})", text, re.ASCII)
    return (
        f"{text}:00" if zoned and len(text) - max(text.rfind("+"), text.rfind("-")) == 3 else text
    )
