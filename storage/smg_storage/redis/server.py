"""Redis server, or cluster of them: its connections, and calls of its functions.

A call is one command: what is asked as JSON, then what is binary. Functions that are not there are
loaded, once per call: a server that was replaced by its copy, or emptied, heals with the first
call. A server that has become a copy is left, and the call is tried once more on a new connection,
which the name of the service leads elsewhere. Nothing else is tried again here: whether a write was
done when a connection broke is not known, and the caller may repeat it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from redis.asyncio import ConnectionPool, Redis, RedisCluster, SSLConnection
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, ReadOnlyError, ResponseError
from redis.maint_notifications import MaintNotificationsConfig

from smg_storage.connection_queue import Line
from smg_storage.options import StoreOptions
from smg_storage.records import PoolFigures
from smg_storage.redis.errors import corrupt, refuse, unavailable
from smg_storage.redis.keys import DEFAULT_PREFIX, Keys
from smg_storage.redis.lua_library import Effect, Library
from smg_storage.url import StoreUrl, StoreUrlError

DEFAULT_PORT: Final = 6379
_TLS_KNOBS: Final = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})
_FLAGS_SINCE: Final = 7
"""The version of servers that lets a script say what it does."""
_MOVES_MAX: Final = 3
"""How often a cluster may send a call elsewhere, or forget where something is, before it is a failure."""

Client = Redis | RedisCluster


class Ask:
    """Call of a function: which, at which slot, for which tenant, and with what."""

    def __init__(
        self, function: str, key: str, base: str, thread: str = "", **arguments: object
    ) -> None:
        self.key: Final = key
        self.arguments: dict[str, object] = {
            "call": function,
            "b": base,
            "g": thread,
            **arguments,
        }
        self.blobs: Final[list[bytes]] = []

    def blob(self, content: bytes) -> int:
        """Add something binary, and return the number by which the function finds it."""
        self.blobs.append(content)
        return len(self.blobs) + 1

    def packed(self, *, now_us: int, alone: bool) -> list[bytes]:
        """Return what is sent after the key."""
        asked = {**self.arguments, "now": now_us, "alone": alone}
        return [msgspec.json.encode(asked), *self.blobs]


class RedisServer:
    """A server, or a cluster of them, that runs our functions."""

    def __init__(self, url: StoreUrl, options: StoreOptions, now_us: Callable[[], int]) -> None:
        clustered = url.scheme.endswith("+cluster")
        if clustered and options.redis_wait_replicas:
            raise StoreUrlError(
                "redis_wait_replicas is for one server; in a cluster set min-replicas-to-write on its servers"
            )
        self.keys: Final = Keys(options.schema.owner or DEFAULT_PREFIX)
        self.alone: Final = not clustered
        """Whether every key is within reach of every function."""
        self.now_us: Final = now_us
        self._options: Final = options
        self._library: Final = Library()
        self._client: Final[Client] = _cluster(url, options) if clustered else _single(url, options)
        self._free: Final = asyncio.Semaphore(options.redis_connections)
        self._line: Final = Line(options.redis_connections)
        self._functions = not clustered
        self._flags = True

    def ask(
        self, function: str, tenant: str, thread: str, key: str = "", /, **arguments: object
    ) -> Ask:
        """Return a call for the slot of a thread, or of another key of the tenant."""
        slot = key or self.keys.slot(tenant, thread)
        return Ask(function, slot, self.keys.base(tenant), thread, **arguments)

    async def call(self, effect: Effect, ask: Ask) -> list[Any] | None:
        """Return what a function answers, None for what is not there; StoreError for what it refuses."""
        return _answer(await self._answered(effect, ask))

    async def call_all(self, effect: Effect, asks: Sequence[Ask]) -> list[list[Any] | None]:
        """The same for many, in one round trip to each server."""
        if len(asks) <= 1:
            return [await self.call(effect, ask) for ask in asks]
        pipe = self._client.pipeline(transaction=False)
        for ask in asks:
            pipe.execute_command(*self._words(effect, ask))
        async with self._room():
            answers = await pipe.execute(raise_on_error=False)
        whole: list[list[Any] | None] = []
        for ask, answer in zip(asks, answers, strict=True):
            if isinstance(answer, Exception):
                answer = await self._again(effect, ask, answer)
            whole.append(_answer(answer))
        return whole

    async def open(self) -> None:
        """Connect; of a cluster, learn which servers it has."""
        if isinstance(self._client, RedisCluster):
            await self._client.initialize()

    async def load(self) -> None:
        """Bring our functions to the server, or find out that it has none and takes scripts."""
        if not self._functions:
            version = str((await self.told("server")).get("redis_version", "0"))
            self._flags = int(version.partition(".")[0]) >= _FLAGS_SINCE
            return
        try:
            await self._done("FUNCTION", "LOAD", self._library.functions)
        except ResponseError as error:
            text = str(error).lower()
            if "already exists" in text:
                return
            if "unknown command" not in text:
                raise
            self._functions = False
            await self.load()

    async def ping(self) -> None:
        """Write something; the driver's error if that cannot be."""
        await self._done("SET", self.keys.ping, "1", "PX", "60000")

    async def told(self, section: str) -> Mapping[str, object]:
        """Return a section of what a server says of itself; of a cluster, of one of its servers."""
        return await self._mapping("INFO", section)

    async def setting(self, name: str) -> str | None:
        """Return one of its settings, None if it does not tell."""
        try:
            found = await self._mapping("CONFIG GET", name)
        except ResponseError:
            return None
        value = found.get(name)
        return None if value is None else str(value)

    async def scan(self, cursors: dict[str, int], count: int) -> list[str]:
        """Return some of our sorted sets and go on from there next time; `cursors` is kept between calls."""
        words = ("MATCH", f"{self.keys.prefix}:*", "COUNT", str(count), "TYPE", "zset")
        found: list[bytes] = []
        for name, node in self._nodes().items():
            args = ("SCAN", str(cursors.get(name, 0)), *words)
            cursor, keys = await self._on(node, *args)
            cursors[name] = int(cursor[name] if isinstance(cursor, Mapping) else cursor)
            found += keys
        return [key.decode(errors="replace") for key in found]

    def pool(self) -> PoolFigures:
        """Return how busy our connections are; of a cluster, those to all of its servers."""
        return self._line.figures()

    async def close(self) -> None:
        """Give back all connections."""
        await self._client.aclose()

    def _nodes(self) -> dict[str, ClusterNode | None]:
        if isinstance(self._client, RedisCluster):
            return {node.name: node for node in self._client.get_primaries()}
        return {"": None}

    async def _on(self, node: ClusterNode | None, *words: str) -> Any:
        if node is None:
            return await self._done(*words)
        async with self._room():
            answer = await self._client.execute_command(*words, target_nodes=node)
        if isinstance(answer, Mapping) and list(answer) == [node.name]:
            return answer[node.name]  # some commands are answered by the name of the server
        return answer

    async def _mapping(self, *words: str) -> Mapping[str, object]:
        node = next(iter(self._nodes().values()))
        answer = await self._on(node, *words)
        return {
            name.decode() if isinstance(name, bytes) else str(name): (
                value.decode() if isinstance(value, bytes) else value
            )
            for name, value in answer.items()
        }

    def _words(self, effect: Effect, ask: Ask) -> list[str | bytes]:
        if effect is not Effect.READ and self._options.redis_wait_replicas:
            ask.arguments["copies"] = True
        packed = ask.packed(now_us=self.now_us(), alone=self.alone)
        if self._functions:
            return ["FCALL", self._library.function(effect), "1", ask.key, *packed]
        digest = self._library.script_digest(effect, flags=self._flags)
        return ["EVALSHA", digest, "1", ask.key, *packed]

    async def _answered(self, effect: Effect, ask: Ask) -> Any:
        try:
            return await self._sent(effect, self._words(effect, ask))
        except (ResponseError, ReadOnlyError) as error:
            return await self._again(effect, ask, error)

    async def _again(self, effect: Effect, ask: Ask, error: Exception) -> Any:
        """Do once more what failed for a reason that can be taken away; raise the error else."""
        if isinstance(error, NoScriptError):
            text = self._library.script(effect, flags=self._flags)
            return await self._sent(effect, ["EVAL", text, *self._words(effect, ask)[2:]])
        if isinstance(error, ReadOnlyError) and isinstance(self._client, Redis):
            await self._client.connection_pool.disconnect(inuse_connections=False)
        elif isinstance(error, ResponseError) and "function not found" in str(error).lower():
            await self.load()
        else:
            raise error
        return await self._sent(effect, self._words(effect, ask))

    async def _sent(self, effect: Effect, words: Sequence[str | bytes]) -> Any:
        replicas = self._options.redis_wait_replicas
        if effect is Effect.READ or not replicas:
            return await self._done(*words)
        pipe = self._client.pipeline(transaction=False)
        pipe.execute_command(*words)
        pipe.execute_command("WAIT", str(replicas), str(self._options.redis_wait_ms))
        async with self._room():
            answer, copies = await pipe.execute(raise_on_error=False)
        for one in (answer, copies):
            if isinstance(one, Exception):
                raise one
        if int(copies) < replicas:
            raise unavailable(f"{copies} of {replicas} replicas have it")
        return answer

    async def _done(self, *words: str | bytes) -> Any:
        async with self._room():
            return await self._client.execute_command(*words)

    @asynccontextmanager
    async def _room(self) -> AsyncIterator[None]:
        """Wait for one of our connections, in line.

        The driver's pool of one server lets those who come later pass by those who wait, until these give up; that of
        a cluster does not wait at all.
        """
        with self._line.place() as place:
            try:
                async with asyncio.timeout(self._options.acquire_timeout_s):
                    await self._free.acquire()
            except TimeoutError as error:
                raise unavailable("no connection is free") from error
            place.served()
            try:
                yield
            finally:
                self._free.release()


def _answer(answer: Any) -> list[Any] | None:
    if not isinstance(answer, list) or not answer:
        raise corrupt("an answer of redis")
    if answer[0] == b"none":
        return None
    if answer[0] == b"no":
        refuse(answer[1].decode(), answer[2].decode(errors="replace"))
    return answer[1:]


def _knobs(url: StoreUrl, options: StoreOptions) -> dict[str, Any]:
    unknown = sorted(set(url.query) - _TLS_KNOBS)
    if unknown:
        raise StoreUrlError(f"{url.scheme}:// knows no {unknown[0]!r}")
    if url.query and not url.scheme.startswith("rediss"):
        raise StoreUrlError("certificates are for rediss://")
    return {
        "username": url.user or None,
        "password": url.password or None,
        "client_name": options.application_name.replace(" ", "-"),
        "protocol": 3,
        "socket_timeout": options.statement_timeout_s,
        "socket_connect_timeout": options.connect_timeout_s,
        "maint_notifications_config": MaintNotificationsConfig(enabled=False),
        **url.query,
    }


def _single(url: StoreUrl, options: StoreOptions) -> Redis:
    host, port = url.hosts[0]
    tls: dict[str, Any] = {"connection_class": SSLConnection} if url.scheme == "rediss" else {}
    pool = ConnectionPool(
        host=host,
        port=port or DEFAULT_PORT,
        db=int(url.path or 0),
        max_connections=options.redis_connections,
        retry=Retry(NoBackoff(), 0),
        **tls,
        **_knobs(url, options),
    )
    return Redis.from_pool(pool)


def _cluster(url: StoreUrl, options: StoreOptions) -> RedisCluster:
    return RedisCluster(
        startup_nodes=[ClusterNode(host, port or DEFAULT_PORT) for host, port in url.hosts],
        max_connections=options.redis_connections,
        retry=Retry(NoBackoff(), _MOVES_MAX),
        ssl=url.scheme.startswith("rediss"),
        **_knobs(url, options),
    )
