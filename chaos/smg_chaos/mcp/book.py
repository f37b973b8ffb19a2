"""Book of an MCP server on purpose: sessions, and counts of what was asked, run, cancelled and hit."""

from collections import Counter
from collections.abc import Mapping
from typing import Any


class Book:
    """State of one server. Tests balance what clients were told against it."""

    def __init__(self) -> None:
        self.methods: Counter[str] = Counter()
        """Requests by method, whatever became of them."""
        self.runs: Counter[str] = Counter()
        """Tools that were run to their end."""
        self.marks: Counter[str] = Counter()
        """Runs that were begun, by their argument `mark`, of those that have one."""
        self.cancelled = 0
        self.connections = 0
        self.deleted = 0
        self.opened = 0
        self.streams = 0
        """Streams by GET."""
        self.request_ids: list[str] = []
        self.answers: list[Mapping[str, Any]] = []
        """What clients answered to requests of the server."""
        self.sessions: dict[str, str] = {}
        """Session ids and their revisions."""

    def begin(self, arguments: Mapping[str, Any]) -> None:
        """Count a run that begins, if it is marked."""
        mark = arguments.get("mark")
        if type(mark) is str:
            self.marks[mark] += 1

    def open_session(self, revision: str) -> str:
        """Return the id of a new session."""
        self.opened += 1
        session = f"session-{self.opened}"
        self.sessions[session] = revision
        return session

    def forget(self) -> None:
        """Forget all sessions."""
        self.sessions.clear()

    def counts(self) -> dict[str, Any]:
        """Return what was counted, as plain values."""
        return {
            "methods": dict(self.methods),
            "runs": dict(self.runs),
            "marks": dict(self.marks),
            "cancelled": self.cancelled,
            "connections": self.connections,
            "opened": self.opened,
            "open": len(self.sessions),
            "deleted": self.deleted,
            "streams": self.streams,
            "request_ids": self.request_ids,
        }
