"""Authenticator of signed tokens: memory first, then the token's head, the issuer's keys, its signature, its claims.

Which issuer's keys are tried is the unverified token's word; that they are the only ones that count for it is what
makes the word true. A token whose key is not here makes the keys' provider fetch, and the caller wait for that.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from smg_node.access.identity import AccessError, Identity, KeysWantedError
from smg_node.access.tokens.claims import IssuerRules, issued_ms, subject_of
from smg_node.access.tokens.issuer import Issuer
from smg_node.access.tokens.key_provider import KeyProvider
from smg_node.access.tokens.key_set import VerificationKey
from smg_node.access.tokens.token_errors import refused, shown, unreachable
from smg_node.access.tokens.token_head import TokenHead, read_token, unverified_issuer
from smg_node.access.tokens.verified_tokens import VerifiedTokens

Denied: TypeAlias = Callable[[str, str, int], bool]
"""Whether tokens are denied, by the alias of their issuer, their subject, and when they were issued in Unix
milliseconds (0: unknown).
"""


def nobody_denied(_alias: str, _subject: str, _issued_ms: int) -> bool:
    """Whether a subject is denied: none is."""
    return False


class TokenAuthenticator:
    """Identities behind the tokens of some issuers. It never waits."""

    def __init__(
        self,
        issuers: Sequence[Issuer],
        keys: KeyProvider,
        verified: VerifiedTokens,
        now_ms: Callable[[], int],
        denied: Denied = nobody_denied,
    ) -> None:
        """Take issuers of different names. A change of what `denied` says is another version of `keys`, which is
        `source` from then on: with another version a token may be worth something else than before.
        """
        self._rules: Final = {issuer.issuer: IssuerRules(issuer) for issuer in issuers}
        assert len(self._rules) == len(issuers)
        self._keys: Final = keys
        self.source: Final = keys
        self._verified: Final = verified
        self._now_ms: Final = now_ms
        self._denied: Final = denied

    def knows(self, token: str) -> bool:
        """Whether a token says that it is of one of the issuers."""
        return unverified_issuer(token) in self._rules

    def identify(self, token: str) -> Identity:
        """Return the identity behind a token; UNAUTHENTICATED, FORBIDDEN, OVERLOADED for an issuer whose keys cannot
        be had, KeysWantedError.
        """
        version, now_ms = self._keys.version, self._now_ms()
        known = self._verified.find(token, version, now_ms)
        if known is not None:
            return known
        head = read_token(token)
        rules = self._rules.get(head.issuer)
        if rules is None:
            raise refused(
                f"no issuer {shown(head.issuer)} is known here", "unknown_issuer", "unknown issuer"
            )
        ends_ms = rules.check(head, now_ms)
        self._verify(head, rules.issuer.alias)
        if self._denied(rules.issuer.alias, subject_of(head.claims), issued_ms(head.claims)):
            raise refused("the token's subject is denied", "denied_token", "denied")
        identity = rules.identify(head.claims, ends_ms)
        self._verified.add(token, version, identity)
        return identity

    def _verify(self, head: TokenHead, alias: str) -> None:
        """Return if a key of the issuer signed the token."""
        keys = self._keys.keys(alias)
        fitting: Sequence[VerificationKey] = ()
        if keys is not None:
            fitting = keys.candidates(head.kid, head.algorithm)
            if any(key.verify(head.algorithm, head.signed, head.signature) for key in fitting):
                return
            if head.kid and head.kid in keys:
                if fitting:
                    raise _bad_signature()
                raise refused(
                    f"the issuer's key {shown(head.kid)} is not for {shown(head.algorithm)}",
                    "algorithm_not_allowed",
                    "signature algorithm not allowed",
                )
        # Another key may have come since: also for a token that names none and that none of these has signed.
        fetch = self._keys.want(alias, head.kid)
        if fetch is not None:
            raise KeysWantedError(alias, fetch)
        if keys is None:
            raise unreachable(alias, had=self._keys.state(alias) == "stale")
        if fitting:
            raise _bad_signature()
        named = f"the key {shown(head.kid)}" if head.kid else "any key that fits"
        raise refused(f"the issuer's set has not {named}", "unknown_key", "unknown key")


def _bad_signature() -> AccessError:
    return refused("the token's signature is not its issuer's", "bad_signature", "bad signature")
