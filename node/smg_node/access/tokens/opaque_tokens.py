"""Opaque tokens: credentials that only their issuer can read, and the identities behind them (RFC 7662).

What an issuer says of a token counts as its claims do, by the same rules. It must be for us: by its `aud`, or, where the
issuer names none, by the client that it was issued to. An identity holds as long as the answer does, so that a token that
was taken back is refused a minute later also on a connection that is kept.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from smg_node.access.identity import KEYS_RETRY_S, AccessError, Identity
from smg_node.access.tokens.claims import IssuerRules, issued_ms, subject_of
from smg_node.access.tokens.introspection_memory import Introspected
from smg_node.access.tokens.issuer import Issuer
from smg_node.access.tokens.token_authenticator import Denied
from smg_node.access.tokens.token_errors import refused, shown
from smg_node.core.errors import ErrorKind

_SHOWN_AUDIENCES: Final = 8


class Introspector(Protocol):
    """Port to what issuers say of opaque tokens."""

    def look_up(self, issuer: Issuer, token: str) -> Introspected | None:
        """Return what is known of a token, None where too many wait already; KeysWantedError while it is asked about."""
        ...


class OpaqueTokens:
    """Identities behind the opaque tokens of one issuer. It never waits."""

    def __init__(self, issuer: Issuer, introspector: Introspector, denied: Denied) -> None:
        self._rules: Final = IssuerRules(issuer)
        self._issuer: Final = issuer
        self._introspector: Final = introspector
        self._denied: Final = denied

    def __call__(self, token: str) -> Identity:
        """Return who a token is of; UNAUTHENTICATED, FORBIDDEN, OVERLOADED without an answer, KeysWantedError."""
        found = self._introspector.look_up(self._issuer, token)
        if found is None:
            raise _unanswered(self._issuer.alias, "is asked about too many tokens")
        if found.is_away:
            raise _unanswered(self._issuer.alias, "does not answer about tokens")
        if found.claims is None:
            raise refused(
                "the token is not good by its issuer's word", "inactive_token", "inactive"
            )
        claims = self._checked(found.claims)
        if self._denied(self._issuer.alias, subject_of(claims), issued_ms(claims)):
            raise refused("the token's subject is denied", "denied_token", "denied")
        return self._rules.identify(claims, found.until_ms)

    def _checked(self, claims: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the claims of a token that is for us, with a subject: of a token that no person is behind its client."""
        issuer = claims.get("iss", self._issuer.issuer)
        if issuer != self._issuer.issuer:
            raise refused(
                f"the token is of {shown(issuer)}, not of its issuer",
                "unknown_issuer",
                "unknown issuer",
            )
        client = claims.get("client_id")
        came = claims.get("aud", client)
        names = [came] if isinstance(came, str) else came if isinstance(came, list) else []
        if not any(name in self._issuer.audiences for name in names if isinstance(name, str)):
            told = ", ".join(shown(name) for name in names[:_SHOWN_AUDIENCES]) or "nobody"
            raise refused(
                f"the token is not for this gateway: its aud is {told}",
                "wrong_audience",
                "wrong audience",
            )
        return claims if "sub" in claims or client is None else {**claims, "sub": client}


def opaque_of(
    issuers: Mapping[str, Issuer], introspector: Introspector, denied: Denied
) -> Callable[[str], Identity] | None:
    """Return what knows opaque tokens; None unless exactly one issuer is asked about them: they do not say whose they are."""
    asked = [issuer for issuer in issuers.values() if issuer.introspection is not None]
    return OpaqueTokens(asked[0], introspector, denied) if len(asked) == 1 else None


def _unanswered(alias: str, why: str) -> AccessError:
    return AccessError(
        ErrorKind.OVERLOADED,
        f"the issuer {alias!r} {why}",
        code="issuer_unreachable",
        challenge="",
        retry_after_s=KEYS_RETRY_S,
    )
