"""Ownership interface: what the books of an owner need to know of the lease of a slot."""

from typing import Protocol


class Ownership(Protocol):
    """Lease of a slot as a treasury needs it; `Holder` fits."""

    def term(self, *, now_ms: int) -> int:
        """Return the term under which this node is the owner now; 0 if it is not."""
        ...

    def mint(self, key: str, window: int, total: int, *, urgent: bool = False) -> None:
        """Wish that so much be minted in all; 0 asks only what there is."""
        ...

    def wished(self, key: str, window: int) -> int:
        """Return the total that was wished for last under this lease; -1 if none was."""
        ...

    def minted(self, key: str, window: int) -> int:
        """Return what a majority has stored, of former owners too; -1 as long as that is not known."""
        ...

    def made(self, key: str, window: int) -> int:
        """Return what this lease has minted itself: it may be given. It only grows while the lease lasts."""
        ...

    def current(self, basis: bytes, *, began_ms: int) -> frozenset[str]:
        """Return the names that go by these definitions since before that moment (wall clock)."""
        ...
