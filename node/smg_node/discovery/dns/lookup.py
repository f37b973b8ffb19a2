"""Lookup: the interface of what asks name servers."""

from typing import Protocol

from smg_node.discovery.dns.answers import Answer, RecordKind


class Lookup(Protocol):
    """Door to the name servers."""

    async def ask(self, name: str, kind: RecordKind) -> Answer:
        """Return what the servers answer for an absolute name; UnansweredError if none of them does."""
        ...
