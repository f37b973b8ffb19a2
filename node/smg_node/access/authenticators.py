"""Authenticators: API keys, signed tokens and opaque credentials behind one interface, each tried by its look alone.

A key of ours begins with `smg-`; a signed token is three parts of base64url of which the first is a JSON object, and
is nothing else when it fails; whatever looks like neither is for the keys of other gateways, and then for an issuer
that can be asked about it.
"""

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from smg_node.access.api_key import PREFIX
from smg_node.access.identity import Authenticator, Identity, KeyAuthenticator
from smg_node.access.tokens.token_authenticator import TokenAuthenticator
from smg_node.access.tokens.token_head import looks_signed
from smg_node.core.errors import ErrorKind, SmgError

Opaque: TypeAlias = Callable[[str], Identity]
"""Returns the identity behind a credential that cannot be read; UNAUTHENTICATED, KeysWantedError."""


class Versioned(Protocol):
    """Something whose `version` grows with each change."""

    @property
    def version(self) -> int:
        """A greater number after each change."""
        ...


class Authenticators:
    """Authenticator of a node with issuers of tokens: their being configured closes it as an admin key does."""

    def __init__(
        self, keys: Authenticator, tokens: TokenAuthenticator, opaque: Opaque | None = None
    ) -> None:
        """Take what knows keys, and what knows tokens; `opaque` is asked about what neither of them knows."""
        self._keys: Final = keys
        self._tokens: Final = tokens
        self._opaque: Final = opaque
        # Read for every request, so that it is one look at each, as it is at keys alone.
        self._own: Final[Versioned] = keys.source if isinstance(keys, KeyAuthenticator) else keys
        self._issued: Final[Versioned] = tokens.source

    @property
    def closed(self) -> bool:
        """Whether credentials are needed: always, since there is an issuer."""
        return True

    @property
    def settled(self) -> bool:
        """Whether this node holds the cluster's keys by now."""
        return self._keys.settled

    @property
    def empty(self) -> bool:
        """Whether nothing could be accepted: never, since there is an issuer."""
        return False

    @property
    def version(self) -> int:
        """Another number after every change of keys or of what tokens are worth: both only grow."""
        return self._own.version + self._issued.version

    def expects(self, credential: str) -> bool:
        """Return whether there are keys of this form, or it is a token that names one of the issuers."""
        if looks_signed(credential):
            return self._tokens.knows(credential)
        return self._keys.expects(credential)

    def is_asked_about(self, credential: str) -> bool:
        """Return whether an issuer would be asked about a credential: one that is no token, and no key that is known."""
        if self._opaque is None or credential.startswith(PREFIX) or looks_signed(credential):
            return False
        try:
            self._keys.identify(credential)
        except SmgError as error:
            return _is_unknown(error)
        return False

    def identify(self, credential: str) -> Identity:
        """Return the identity behind a credential; UNAUTHENTICATED, FORBIDDEN, OVERLOADED, KeysWantedError."""
        if looks_signed(credential):
            return self._tokens.identify(credential)
        if self._opaque is None or credential.startswith(PREFIX):
            return self._keys.identify(credential)
        try:
            return self._keys.identify(credential)
        except SmgError as error:
            # Its record is known, and it is not good: nobody else is asked about it.
            if not _is_unknown(error):
                raise
            return self._opaque(credential)


def _is_unknown(error: SmgError) -> bool:
    return error.kind is ErrorKind.UNAUTHENTICATED and error.code == "invalid_api_key"
