"""A real PostgreSQL for tests: a server of its own, and in it a database for each test.

Without `fsync`, because no test cuts the power; but with `synchronous_commit`, so that what was acknowledged has
left the process that is going to be killed.
"""

import itertools
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from smg_chaos.stores import postgresql
from smg_chaos.stores.server_user import (
    ServerError,
    User,
    readable_copy,
    server_folder,
    server_user,
)
from support.processes.servers import Recipe, Server, first_that_runs, own_port

URL_VARIABLE: Final = "SMG_TEST_POSTGRES_URL"


class Postgres:
    """A server with databases: `url` is that of one that is always there."""

    def __init__(self, url: str, server: Server | None) -> None:
        self.url = url
        self._server = server
        self._numbers = itertools.count(1)
        self._prepared: dict[str, str] = {}

    @property
    def server(self) -> Server:
        """The process, to be stopped, killed and started again; ServerError if it is not ours."""
        if self._server is None:
            raise ServerError(f"the server of {URL_VARIABLE} is not ours to be killed")
        return self._server

    def url_of(self, database: str) -> str:
        """Return the URL of a database."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(path=f"/{database}"))

    @asynccontextmanager
    async def database(
        self, prepare: Callable[[str], Awaitable[None]] | None = None, *, name: str = "plain"
    ) -> AsyncIterator[str]:
        """Make a database and return its URL; it is dropped afterwards.

        With `prepare` it is a copy of one that `prepare` was called with the URL of, once for each `name`;
        `prepare` leaves no connection behind, because what is connected to cannot be copied.
        """
        template = await self._template(prepare, name) if prepare is not None else "template0"
        database = f"smg_{os.getpid()}_{next(self._numbers)}"
        await self._tell(f'CREATE DATABASE "{database}" TEMPLATE "{template}"')
        try:
            yield self.url_of(database)
        finally:
            if self._server is None or self._server.is_running:
                await self._tell(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    async def _template(self, prepare: Callable[[str], Awaitable[None]], name: str) -> str:
        if name not in self._prepared:
            template = f"smg_{os.getpid()}_template_{name}"
            await self._tell(f'DROP DATABASE IF EXISTS "{template}" WITH (FORCE)')
            await self._tell(f'CREATE DATABASE "{template}" TEMPLATE template0')
            await prepare(self.url_of(template))
            self._prepared[name] = template
        return self._prepared[name]

    async def _tell(self, statement: str) -> None:
        url = self.url.replace("postgresql://", "postgresql+asyncpg://", 1)
        engine = create_async_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        async with engine.connect() as connection:
            await connection.exec_driver_sql(statement)
        await engine.dispose()


@contextmanager
def running_postgres(log_folder: Path, *, own: bool = False) -> Iterator[Postgres]:
    """Return a PostgreSQL for as long as the tests last; `own`: one that may be killed."""
    given = os.environ.get(URL_VARIABLE, "")
    if given and not own:
        yield Postgres(given, None)
        return
    user = server_user()
    places: dict[str, int] = {}

    def attempt(software: Path, trees: list[Path]) -> Callable[[ExitStack], Server]:
        def begin(stack: ExitStack) -> Server:
            folder = stack.enter_context(server_folder("postgres", user))
            places["port"] = stack.enter_context(own_port())
            initdb = readable_copy(trees, software / "initdb", folder, user)
            return _initialised(initdb, folder, user, places["port"], log_folder)

        return begin

    attempts = {
        str(software): attempt(software, trees) for software, trees in postgresql.installed()
    }
    with first_that_runs("PostgreSQL", attempts) as server:
        yield Postgres(
            f"postgresql://{postgresql.USER}@127.0.0.1:{places['port']}/postgres", server
        )


def _initialised(initdb: Path, folder: Path, user: User, port: int, log_folder: Path) -> Server:
    """Make the files of a server, and return it, not started yet."""
    files = folder / "files"
    made = subprocess.run(
        postgresql.files_command(initdb, files),
        cwd=folder,
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
        user=user.uid if user.is_other else None,
        group=user.gid if user.is_other else None,
        extra_groups=[] if user.is_other else None,
    )
    if made.returncode != 0:
        said = (made.stdout + made.stderr).decode(errors="replace")
        raise ServerError(f"initdb ended with status {made.returncode}: {said[-2_000:]}")
    recipe = Recipe(
        name="postgres",
        command=postgresql.server_command(initdb, files, port=port),
        folder=folder,
        user=user,
        ready=postgresql.READY,
        polite=signal.SIGINT,
    )
    return Server(recipe, log_folder)
