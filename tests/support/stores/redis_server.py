"""A real Valkey or Redis for tests: a server of its own, and in it a prefix for each test."""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from smg_chaos.stores import redis as programs
from smg_chaos.stores.redis import Durability
from smg_chaos.stores.server_user import ServerError, readable_copy, server_folder, server_user
from support.processes.servers import Recipe, Server, first_that_runs, own_port

URL_VARIABLE: Final = "SMG_TEST_REDIS_URL"


class Redis:
    """A server at `url`."""

    def __init__(self, url: str, server: Server | None) -> None:
        self.url = url
        self._server = server
        self._numbers = itertools.count(1)

    @property
    def server(self) -> Server:
        """The process, to be stopped, killed and started again; ServerError if it is not ours."""
        if self._server is None:
            raise ServerError(f"the server of {URL_VARIABLE} is not ours to be killed")
        return self._server

    @property
    def port(self) -> int:
        """The port it listens at."""
        return urlsplit(self.url).port or 6379

    def new_prefix(self) -> str:
        """Return a prefix for keys that no other test uses."""
        return f"smg_{os.getpid()}_{next(self._numbers)}"


@contextmanager
def running_redis(
    log_folder: Path,
    *,
    own: bool = False,
    durability: Durability = "none",
    arguments: Sequence[str] = (),
) -> Iterator[Redis]:
    """Return a Valkey or Redis for as long as the tests last; `own`: one that may be killed.

    What it keeps over its death depends on `durability`, which is that of its append-only file; `arguments` are
    more of the server's own.
    """
    given = os.environ.get(URL_VARIABLE, "")
    if given and not own and durability == "none" and not arguments:
        yield Redis(given, None)
        return
    user = server_user()
    places: dict[str, int] = {}

    def attempt(software: Path, trees: list[Path]) -> Callable[[ExitStack], Server]:
        def begin(stack: ExitStack) -> Server:
            folder = stack.enter_context(server_folder("redis", user))
            places["port"] = stack.enter_context(own_port())
            binary = readable_copy(trees, software, folder, user)
            command = programs.server_command(
                binary,
                folder,
                port=places["port"],
                durability=durability,
                arguments=("--enable-debug-command", "local", *arguments),
            )
            recipe = Recipe("redis", command, folder, user, ready=programs.READY)
            return Server(recipe, log_folder)

        return begin

    attempts = {str(software): attempt(software, trees) for software, trees in programs.installed()}
    with first_that_runs("Valkey or Redis", attempts) as server:
        yield Redis(f"redis://127.0.0.1:{places['port']}/0", server)
