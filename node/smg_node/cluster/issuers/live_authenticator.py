"""Live authenticator: API keys, and tokens of whichever issuers count at the moment.

It takes the place of what knows API keys alone with the first issuer, and stays. Its version grows with every change of
issuers, so that what was found by other issuers is found anew. An issuer that this release cannot follow takes no tokens
and closes the node all the same: open it would be for whoever the issuer was to keep out.
"""

from collections.abc import Callable
from typing import Final

from smg_node.access.authenticators import Authenticators, Versioned
from smg_node.access.identity import Authenticator, Identity, KeyAuthenticator


class LiveAuthenticator:
    """See `Authenticator`. `make` returns what knows tokens by the issuers there are now, None without any; the version
    of `issued` grows with every change of them and of their keys, and is never 0; `closes` says whether any is defined,
    followed or not.
    """

    def __init__(
        self,
        keys: Authenticator,
        make: Callable[[Authenticator], Authenticators | None],
        issued: Versioned,
        closes: Callable[[], bool],
    ) -> None:
        self._keys: Final = keys
        self._make: Final = make
        # Read for every request, so that it is one look at each, whatever stands before them.
        self._own: Final[Versioned] = keys.source if isinstance(keys, KeyAuthenticator) else keys
        self._issued: Final = issued
        self._closes: Final = closes
        self._now: Authenticator = make(keys) or keys

    def refresh(self) -> None:
        """Go by the issuers that there are now."""
        self._now = self._make(self._keys) or self._keys

    @property
    def closed(self) -> bool:
        """Whether credentials are needed: an issuer or an admin key exists."""
        return self._now.closed or self._closes()

    @property
    def settled(self) -> bool:
        """Whether this node holds the cluster's credentials by now."""
        return self._now.settled

    @property
    def empty(self) -> bool:
        """Whether no credential exists that could be accepted."""
        return self._now.empty

    @property
    def version(self) -> int:
        """Another number whenever a credential may be worth something else than before."""
        return self._own.version + self._issued.version

    def expects(self, credential: str) -> bool:
        """Return whether a credential is meant for this node, by its look alone."""
        return self._now.expects(credential)

    def is_asked_about(self, credential: str) -> bool:
        """Return whether an issuer would be asked about a credential."""
        return self._now.is_asked_about(credential)

    def identify(self, credential: str) -> Identity:
        """Return the identity behind a credential; errors as `Authenticators`."""
        return self._now.identify(credential)
