"""Interface to the keys of issuers: the set that counts now, how fresh it is, and a fetch for a key not in it."""

from typing import Literal, Protocol, TypeAlias

from smg_node.access.identity import Ready
from smg_node.access.tokens.key_set import KeySet

KeyState: TypeAlias = Literal["fresh", "stale", "never"]
"""Whether an issuer's keys may be used: `fresh`, they may; `stale`, those here are older than `keys_max_age_s`;
`never`, there are none yet.
"""


class KeyProvider(Protocol):
    """Keys of the configured issuers, by alias. Nothing here waits."""

    @property
    def version(self) -> int:
        """A greater number whenever the content of a set, its state or the list of denied subjects changes: what
        was found by another version is found anew. A fetch that brings the same keys changes nothing.
        """
        ...

    def keys(self, alias: str) -> KeySet | None:
        """Return the keys that tokens of an issuer may be signed with; None unless its state is `fresh`."""
        ...

    def state(self, alias: str) -> KeyState:
        """Return whether an issuer's keys may be used."""
        ...

    def want(self, alias: str, kid: str) -> Ready | None:
        """Return what is done as soon as a fetch for this key has ended, well or not: one that begins now or is under
        way. None where none may be made now.

        `kid` may be "", for a token that names no key or an issuer without any. Who waits gives up by itself and
        does not cancel the future, which others wait for too (`asyncio.shield`).
        """
        ...
