"""Session stream: the stream by GET of one session, which a server gives to one client at a time, over all processes.

One process has it and lets the others know what it hears of: that the list of tools has changed. The others look now and
then whether it has the stream still. A server that says 409 gives it to somebody of whom nothing is known (yet).
"""

import asyncio
from typing import Any, Final

from smg_node.mcp.doors.door import Door, Spawn
from smg_node.mcp.failures import Failure
from smg_node.mcp.session.session import Session
from smg_node.mcp.session.shared_session import RENEW_S, SharedSession

LOOK_S: Final = 15.0
"""So often it is looked whether the process that has a stream has it still."""
TELL_CHANGE_S: Final = 10.0
"""Changes of a list of tools are told to other processes this often at most."""
_CONFLICT: Final = 409


class SessionStream:
    """Stream of the sessions of one channel, one after the other. `shared` is None where no other process uses them."""

    def __init__(self, shared: SharedSession | None, spawn: Spawn) -> None:
        self._shared = shared
        self._spawn = spawn
        self._task: asyncio.Task[Any] | None = None
        self._untold = False
        self._telling = False

    def follow(self, door: Door, session: Session) -> None:
        """Hear what the server of a session says unasked, until the session is ended or the door closed."""
        self._spawn(self._follow(door, session))

    def stop(self) -> None:
        """Hear nothing more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    def tell_change(self, session: Session) -> None:
        """Let the other processes of a session know that its list of tools has changed."""
        if self._shared is None or not session.session_id:
            return
        self._untold = True
        if not self._telling:
            self._telling = True
            self._spawn(self._tell(self._shared, session))

    async def _follow(self, door: Door, session: Session) -> None:
        self._task = asyncio.current_task()
        while not (session.ended or door.closed):
            if self._shared is None or self._shared.may_listen(session):
                failure = await self._held(door, session)
                if failure is None or failure.status != _CONFLICT:
                    return
            await asyncio.sleep(LOOK_S)

    async def _held(self, door: Door, session: Session) -> Failure | None:
        """Listen, and let the others know for as long as that lasts; return why there is nothing to hear."""
        shared = self._shared
        if shared is None or not session.session_id:
            return await door.listen(session, _unsaid)
        renewal: asyncio.TimerHandle | None = None

        def hold() -> None:
            nonlocal renewal
            shared.hold(session)
            if renewal is not None:
                renewal.cancel()
            renewal = asyncio.get_running_loop().call_later(RENEW_S, hold)

        try:
            return await door.listen(session, hold)
        finally:
            if renewal is not None:
                renewal.cancel()
                shared.hold(session, on=False)

    async def _tell(self, shared: SharedSession, session: Session) -> None:
        try:
            while self._untold:
                self._untold = False
                shared.tell_change(session)
                await asyncio.sleep(TELL_CHANGE_S)
        finally:
            self._telling = False


def _unsaid() -> None:
    """Tell nobody."""
