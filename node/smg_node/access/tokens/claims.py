"""Claims of a token against the rules of its issuer: an identity, or a named reason why not (RFC 7519, RFC 9068).

The checks are in two halves. What a token claims of time, audience, type and signature algorithm is looked at before
its signature, which costs a hundred times as much, and before anyone is asked for a key: an expired token must not
make a node fetch. Who it is for is looked at afterwards, since then the claims are the issuer's words. Pure.
"""

from base64 import b32encode
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import isfinite
from typing import Any, Final

from smg_node.access.certificates import TENANT
from smg_node.access.certificates import shown as printable
from smg_node.access.identity import AccessError, Identity, Role
from smg_node.access.tokens.issuer import Issuer
from smg_node.access.tokens.json_pointer import MISSING, Missing, pointed, pointer_names
from smg_node.access.tokens.role_pattern import RolePattern
from smg_node.access.tokens.token_errors import malformed, refused, shown, worthless
from smg_node.access.tokens.token_head import TokenHead
from smg_node.config.token_forms import NO_TYPE

_KEY_ID_PREFIX: Final = "t"
_KEY_ID_CHARACTERS: Final = 15
_ENDS_MAX_S: Final = 1 << 50
"""Later than any wall clock, and still exact in milliseconds as a number of floating point."""
_SHOWN_ROLES: Final = 8
_SUBJECT_MAX: Final = 1024
ANY_TOKEN: Final = "*"


class IssuerRules:
    """The rules of one issuer, made ready: its pointers are taken apart and its patterns built."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self._roles = pointer_names(issuer.roles) if issuer.roles else ()
        self._tenant = pointer_names(issuer.tenant) if issuer.tenant else ()
        named = [(name, role) for name, role in issuer.role_map if name != ANY_TOKEN]
        self._patterns = [(RolePattern(name), role) for name, role in named]
        self._any = next((role for name, role in issuer.role_map if name == ANY_TOKEN), None)
        self._leeway_s = issuer.leeway_s

    def check(self, head: TokenHead, now_ms: int) -> int:
        """Return until when a token is good, in Unix milliseconds; UNAUTHENTICATED for one that no signature could
        make good here.
        """
        if head.algorithm not in self.issuer.algorithms:
            raise refused(
                f"tokens signed by {shown(head.algorithm)} are not taken from this issuer",
                "algorithm_not_allowed",
                "signature algorithm not allowed",
            )
        self._check_type(head)
        ends_ms = self._check_times(head.claims, now_ms)
        self._check_audience(head.claims)
        return ends_ms

    def identify(self, claims: Mapping[str, Any], ends_ms: int) -> Identity:
        """Return who claims that were proven to be the issuer's speak of; FORBIDDEN `no_role`, `tenant_not_usable`."""
        subject = subject_of(claims)
        role = self._role(claims)
        tenant = self._tenant_of(claims, role)
        said = printable(f"token:{self.issuer.alias}/{subject}")
        return Identity(key_id_of(self.issuer.issuer, subject), tenant, role, ends_ms, said)

    def _check_type(self, head: TokenHead) -> None:
        types = self.issuer.token_types
        told = head.type
        if NO_TYPE in types if told is None else (told != NO_TYPE and told in types):
            return
        raise refused(
            f"tokens of type {shown(told or NO_TYPE)} are not taken from this issuer",
            "wrong_token_type",
            "token type not allowed",
        )

    def _check_times(self, claims: Mapping[str, Any], now_ms: int) -> int:
        now_s, leeway_s = now_ms / 1000, self._leeway_s
        expires_s = _time(claims, "exp")
        if expires_s is None:
            raise malformed("the token has no exp: one that never expires is not taken")
        if now_s >= expires_s + leeway_s:
            raise refused("the token has expired", "expired_token", "expired")
        for name in ("nbf", "iat"):
            begins_s = _time(claims, name)
            if begins_s is not None and begins_s > now_s + leeway_s:
                raise refused(
                    f"the token's {name} is {begins_s - now_s:.0f} s ahead of this node's clock",
                    "token_not_yet_valid",
                    "not yet valid",
                )
        return int(min(expires_s + leeway_s, _ENDS_MAX_S) * 1000)

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        came = claims.get("aud")
        names = [came] if isinstance(came, str) else came if isinstance(came, list) else []
        if any(name in self.issuer.audiences for name in names if isinstance(name, str)):
            return
        told = ", ".join(shown(name) for name in names[:_SHOWN_ROLES]) or "nobody"
        raise refused(
            f"the token is not for this gateway: its aud is {told}",
            "wrong_audience",
            "wrong audience",
        )

    def _role(self, claims: Mapping[str, Any]) -> Role:
        """Return the best role that a token's roles are worth."""
        found = pointed(claims, self._roles) if self._roles else MISSING
        names = _names(found)
        worth = [role for pattern, role in self._patterns if any(map(pattern.matches, names))]
        if self._any is not None:
            worth.append(self._any)
        if worth:
            return self.issuer.known_roles.best(worth)
        raise self._no_role(claims, found, names)

    def _no_role(
        self, claims: Mapping[str, Any], found: object, names: Sequence[str]
    ) -> AccessError:
        pointer, alias = self.issuer.roles, self.issuer.alias
        elsewhere = claims.get("_claim_names")
        if names:
            came = f"has {', '.join(shown(name) for name in names[:_SHOWN_ROLES])}"
        elif isinstance(elsewhere, dict) and self._roles and self._roles[0] in elsewhere:
            # Entra does so with more than 200 groups.
            came = "is left out, with a link in its place, which is not followed"
        else:
            came = "is not there" if isinstance(found, Missing) else "names no role"
        return worthless(
            f"the token's {pointer or 'role'} {came}: nothing that auth.issuers.{alias}.role_map knows",
            "no_role",
        )

    def _tenant_of(self, claims: Mapping[str, Any], role: Role) -> str:
        """Return the tenant; "" where the role needs none."""
        if self.issuer.tenant_fixed:
            return self.issuer.tenant_fixed
        found = pointed(claims, self._tenant) if self._tenant else MISSING
        if isinstance(found, Missing | None):
            if not self.issuer.known_roles.needs_tenant(role):
                return ""
            raise self._no_tenant("is not there")
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise self._no_tenant("is no text")
        tenant = f"{self.issuer.tenant_prefix}{found}"
        if not TENANT.fullmatch(tenant):
            raise self._no_tenant(f"gives {shown(tenant)}, which no tenant can be called")
        return tenant

    def _no_tenant(self, why: str) -> AccessError:
        pointer = self.issuer.tenant or "tenant"
        return worthless(f"the token's {pointer} {why}", "tenant_not_usable")


def subject_of(claims: Mapping[str, Any]) -> str:
    """Return whom a token is about; UNAUTHENTICATED for one that does not say."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _SUBJECT_MAX:
        raise malformed(f"the token's sub is not a text of 1 to {_SUBJECT_MAX} characters")
    return subject


def issued_ms(claims: Mapping[str, Any]) -> int:
    """Return when a token was issued, in Unix milliseconds; 0 for one that does not say."""
    issued_s = _time(claims, "iat")
    return 0 if issued_s is None else int(min(issued_s, _ENDS_MAX_S) * 1000)


def key_id_of(issuer: str, subject: str) -> str:
    """Return the id under which a subject's usage and limits are kept: the same for all its tokens."""
    # No issuer holds a zero byte, so no two pairs are written the same way.
    text = f"{issuer}\0{subject}".encode("utf-8", "surrogatepass")
    digest = blake2b(text, digest_size=16).digest()
    return _KEY_ID_PREFIX + b32encode(digest).decode("ascii").lower()[:_KEY_ID_CHARACTERS]


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a time in Unix seconds, None where it is not there."""
    if name not in claims:
        return None
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise malformed(f"the token's {name} is no number")
    try:
        seconds = float(value)
    except OverflowError:
        raise malformed(f"the token's {name} is no time") from None
    if not isfinite(seconds) or seconds < 0:
        raise malformed(f"the token's {name} is no time")
    return seconds


def _names(found: object) -> list[str]:
    """Return the roles in a claim: of a text its words, of a list its texts, of a map its names."""
    if isinstance(found, str):
        return found.split()
    if isinstance(found, list | dict):
        return [name for name in found if isinstance(name, str)]
    return []
