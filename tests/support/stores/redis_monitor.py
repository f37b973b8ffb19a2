"""What a server of Redis's kind is really sent: counted by the server's own MONITOR."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from redis.asyncio import Redis

_END: Final = "that is all"


class Heard:
    """The commands that came while it was listened, without what functions do inside the server."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    @property
    def calls(self) -> list[str]:
        """The names of commands, in order."""
        return [command.partition(" ")[0] for command in self.commands]


@asynccontextmanager
async def listening(port: int) -> AsyncIterator[Heard]:
    """Listen to everything that a server is sent meanwhile; `commands` is filled at the end."""
    heard = Heard()
    async with Redis(port=port) as teller, Redis(port=port).monitor() as monitor:
        yield heard
        await teller.echo(_END)
        while True:
            told = await monitor.next_command()
            command = str(told["command"])
            if command == f"ECHO {_END}":
                return
            if told["client_type"] != "lua" and not command.startswith(("HELLO", "CLIENT")):
                heard.commands.append(command)
