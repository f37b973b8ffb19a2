"""Door: interface of one way to a server, whatever carries the bytes."""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol, TypeAlias

from smg_node.mcp.failures import Failure
from smg_node.mcp.session.session import Notification, Outcome, Progressed, Request, Session

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine beside others, in the group of tasks of whoever owns the doors."""
OnProgress: TypeAlias = Callable[[Progressed], None]
OnChange: TypeAlias = Callable[[], None]
"""Told that a server's list of tools is out of date."""


class Exchange(NamedTuple):
    """The outcome of a request, and the session id that came with it by HTTP, "" for none."""

    outcome: Outcome
    session_id: str = ""


class Door(Protocol):
    """One way to one server. It raises nothing of what servers and networks do: that is an outcome."""

    closed: str
    """Why it is of no use any more; "" while it is."""

    async def ask(self, session: Session, request: Request, on_progress: OnProgress) -> Exchange:
        """Send a request and return what came of it. Cancelled, it lets go of what it holds of the answer."""
        ...

    async def tell(self, session: Session, notification: Notification) -> Failure | None:
        """Send what needs no answer."""
        ...

    async def listen(self, session: Session, begun: Callable[[], None]) -> Failure | None:
        """Hear what the server says unasked, until the session ends; return why there is nothing to hear.

        `begun` is called when the server has given its stream.
        """
        ...

    async def end(self, session: Session) -> None:
        """End a session, and no connection."""
        ...

    async def close(self, session: Session | None) -> None:
        """End the session, if there is one, and all connections."""
        ...
