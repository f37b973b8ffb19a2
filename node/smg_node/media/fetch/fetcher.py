"""Fetcher: the only door through which media of clients' URLs come in, over aiohttp's client.

A host is looked up once and all its addresses are checked (`checked_resolver`). No cookie, credential or proxy of the
environment goes along. Redirects are followed by hand, each checked anew. Answers are read up to a limit. What an
origin says, and where it is, is told to nobody: errors name the part and a reason.
"""

import asyncio
import ssl
import time
from asyncio import Semaphore, TaskGroup
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import msgspec
from aiohttp import (
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from yarl import URL

from smg_node import __version__
from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaPart
from smg_node.media.fetch.answer_body import AnswerBody, BodyError, Charge, TooLargeError
from smg_node.media.fetch.checked_resolver import (
    CheckedResolver,
    ForbiddenAddressError,
    Lookup,
    SystemLookup,
)
from smg_node.media.fetch.fetch_rules import REDIRECTS_MAX, FetchRules, forbidden, unavailable
from smg_node.media.fetch.url_cache import FRESH_MAX_S, UrlCache, fresh_s
from smg_node.media.sources import too_large

_CONNECTIONS_MAX: Final = 256
"""Connections of a process to origins at a time; more wait, and their time runs."""
_KEPT_S: Final = 4.0
"""Servers close idle connections after 5 s and more."""
_LINE_MAX_BYTES: Final = 16_384
_PIECE_BYTES: Final = 65_536
_BEGINNING_BYTES: Final = 4_096
"""What is looked at first of a file of which the beginning may be enough; then twice as much, and so on."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_FRESHNESS: Final = ("cache-control", "vary", "age")
_HEADERS: Final = {
    "user-agent": f"smg-node/{__version__}",
    "accept": "*/*",
    "accept-encoding": "identity",
}


Enough: TypeAlias = Callable[[bytes], Awaitable[bool]]
"""Whether the first bytes of a file are all that is wanted of it."""


class FetchLimits(msgspec.Struct, frozen=True):
    """Limits of fetches: bytes of one answer, seconds by what it is, and fetches at a time within one request.

    `bytes_max` bounds pictures and files, `video_bytes_max` and `audio_bytes_max` what they say; None is as pictures.
    `cache_bytes` are what files may take that are used again, 0 to keep none.
    """

    bytes_max: int
    picture_s: float = 5.0
    clip_s: float = 30.0
    per_request: int = 16
    per_host: int = 4
    cache_bytes: int = 0
    video_bytes_max: int | None = None
    audio_bytes_max: int | None = None

    def seconds(self, part: MediaPart) -> float:
        """Return how long the fetch of a part may take, with all redirects."""
        return self.clip_s if part.kind in ("video", "audio") else self.picture_s

    def bytes_of(self, part: MediaPart) -> int:
        """Return how many bytes the file of a part may have."""
        own = {"video": self.video_bytes_max, "audio": self.audio_bytes_max}.get(part.kind)
        return self.bytes_max if own is None else own


def trusted() -> ssl.SSLContext:
    """Return the TLS context that trusts this machine's certificates: 20 ms, and a megabyte."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))
    return context


class Fetcher:
    """Fetcher of one process; it opens nothing before it is used. `close` when nobody needs it any more.

    `rules` and `limits` are asked at each request, as they may change. `lookup` finds the addresses of hosts, by default
    the system's. `trust` makes the TLS context, in a thread. `monotonic_s` is the clock of what is used again.
    """

    def __init__(
        self,
        rules: Callable[[], FetchRules],
        limits: Callable[[], FetchLimits],
        *,
        lookup: Lookup | None = None,
        trust: Callable[[], ssl.SSLContext] = trusted,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._limits = limits
        self._own = SystemLookup() if lookup is None else None
        found = lookup or self._own
        assert found is not None, "one of the two is there"
        self._resolver = CheckedResolver(found, self._allows)
        self._trust = trust
        self._session: ClientSession | None = None
        self._opening = asyncio.Lock()
        self._cache = UrlCache()
        self._monotonic_s = monotonic_s

    async def fetch(
        self,
        parts: Sequence[MediaPart],
        charge: Charge,
        enough: Enough | None = None,
        tenant: str | None = "",
    ) -> list[bytes]:
        """Return the files of parts with http and https URLs, in their order; one that is named twice as the same
        kind is fetched once.

        Of a file of which `enough` says so, no more is read, and that much returned.
        `charge` is told of bytes before they are kept; what it raises ends everything. INVALID_REQUEST at the path of
        a part that fails, which ends the others: `media_forbidden` by the rules, `media_unavailable` by its origin or by time,
        `media_too_large`. All URLs are checked before one is asked. Files that are kept are those of
        `tenant`; for None none are kept or used. Nothing is left running, however it ends.
        """
        rules, limits = self._rules(), self._limits()
        urls = [rules.checked(part.source, part.where) for part in parts]
        session = await self._open()
        kept = _KeptFiles(self._cache, tenant, limits, self._monotonic_s)
        request = _Request(session, rules, limits, charge, enough, kept)
        # Each kind has limits of its own.
        names = [(part.kind, part.source) for part in parts]
        tasks: dict[tuple[str, str], asyncio.Task[bytes]] = {}
        failures: list[SmgError] = []
        try:
            async with TaskGroup() as group:
                for name, part, url in zip(names, parts, urls, strict=True):
                    if name not in tasks:
                        tasks[name] = group.create_task(request.one(part, url))
        except* SmgError as failed:
            failures = _all_of(failed)
        if failures:
            raise failures[0]
        return [tasks[name].result() for name in names]

    async def check(self, parts: Sequence[MediaPart]) -> None:
        """Return if the http and https URLs of parts might be fetched now: those that others are to fetch.

        The rules are those of `fetch`, and so are the errors. A host is looked up, and all its addresses are checked;
        who then fetches looks it up again, and may be led elsewhere.
        """
        rules, limits = self._rules(), self._limits()
        for part in parts:
            url = rules.checked(part.source, part.where)
            host, port = url.raw_host or "", url.port or 0
            try:
                async with asyncio.timeout(limits.picture_s):
                    await self._resolver.resolve(host, port)
            except TimeoutError as error:
                raise unavailable("its host could not be looked up in time", part.where) from error
            except ForbiddenAddressError as error:
                raise forbidden("its host is not on the public network", part.where) from error
            except OSError as error:
                raise unavailable("its host has no address", part.where) from error

    def trim(self) -> None:
        """Let go of kept files that the limits do not allow any more."""
        self._cache.shrink(self._limits().cache_bytes)

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        if self._own is not None:
            self._own.close()

    def _allows(self, host: str, port: int, address: str) -> bool:
        return self._rules().allows(host, port, address)

    async def _open(self) -> ClientSession:
        async with self._opening:
            if self._session is None:
                context = await asyncio.to_thread(self._trust)
                self._session = ClientSession(
                    connector=TCPConnector(
                        ssl=context,
                        limit=_CONNECTIONS_MAX,
                        keepalive_timeout=_KEPT_S,
                        resolver=self._resolver,
                        use_dns_cache=False,
                        socket_factory=self._resolver.socket,
                    ),
                    cookie_jar=DummyCookieJar(),
                    timeout=ClientTimeout(total=None),
                    headers=_HEADERS,
                    auto_decompress=False,
                    trust_env=False,
                    read_bufsize=_PIECE_BYTES,
                    max_line_size=_LINE_MAX_BYTES,
                    max_field_size=_LINE_MAX_BYTES,
                )
            return self._session


class _KeptFiles:
    """The files that are kept for one tenant; none for None."""

    def __init__(
        self,
        cache: UrlCache,
        tenant: str | None,
        limits: FetchLimits,
        monotonic_s: Callable[[], float],
    ) -> None:
        self._cache = cache
        self._tenant = tenant
        self._limits = limits
        self._monotonic_s = monotonic_s

    def find(self, url: str) -> bytes | None:
        """Return what is kept of a URL, if it may still be used."""
        if self._tenant is None or not self._limits.cache_bytes:
            return None
        return self._cache.find(url, self._monotonic_s(), tenant=self._tenant)

    def keep(self, url: str, content: bytes, fresh_s: float) -> None:
        """Keep a file for as long as its origin allows."""
        room = self._limits.cache_bytes
        if room and fresh_s and self._tenant is not None:
            until_s = self._monotonic_s() + fresh_s
            self._cache.keep(url, content, until_s=until_s, bytes_max=room, tenant=self._tenant)


class _Request:
    """The fetches of one request."""

    def __init__(
        self,
        session: ClientSession,
        rules: FetchRules,
        limits: FetchLimits,
        charge: Charge,
        enough: Enough | None,
        kept: "_KeptFiles",
    ) -> None:
        self._session = session
        self._rules = rules
        self._limits = limits
        self._charge = charge
        self._enough = enough
        self._kept = kept
        self._all = Semaphore(limits.per_request)
        self._hosts: dict[str, Semaphore] = {}

    async def one(self, part: MediaPart, url: URL) -> bytes:
        """Return the file of a part; errors are as in `Fetcher.fetch`."""
        known = self._kept.find(part.source)
        if known is not None and len(known) <= self._limits.bytes_of(part):
            self._charge(len(known))
            return known
        host = self._hosts.setdefault(url.raw_host or "", Semaphore(self._limits.per_host))
        seconds = self._limits.seconds(part)
        try:
            async with host, self._all, asyncio.timeout(seconds):
                return await self._follow(part, url)
        except TimeoutError as error:
            why = f"its origin took more than {seconds:g} s"
            raise unavailable(why, part.where) from error
        except ClientConnectorDNSError as error:
            if isinstance(error.os_error, ForbiddenAddressError):
                raise forbidden("its host is not on the public network", part.where) from error
            raise unavailable("its host has no address", part.where) from error
        except (ClientError, OSError, ValueError) as error:
            raise unavailable(_reason(error), part.where) from error

    async def _follow(self, part: MediaPart, url: URL) -> bytes:
        fresh = FRESH_MAX_S
        for _ in range(REDIRECTS_MAX + 1):
            response = await self._session.get(url, allow_redirects=False)
            # As long as the shortest on the way.
            fresh = min(fresh, fresh_s(_headers(response)))
            try:
                if response.status not in _REDIRECTS:
                    content, whole = await self._read(part, response)
                    if whole:
                        self._kept.keep(part.source, content, fresh)
                    return content
                location = response.headers.get("location", "")
            finally:
                # A body that nobody reads is not waited for.
                response.close()
            url = self._rules.redirected(url, location, part.where)
        raise unavailable(f"its origin redirects more than {REDIRECTS_MAX} times", part.where)

    async def _read(self, part: MediaPart, response: ClientResponse) -> tuple[bytes, bool]:
        """Return what an origin sends, and whether it is all of that."""
        if response.status != 200:
            raise unavailable(f"its origin answers with status {response.status}", part.where)
        limit = self._limits.bytes_of(part)
        size = response.content_length
        if size is not None and size > limit:
            raise too_large(part, size, limit)
        try:
            encoding = response.headers.get("content-encoding", "").strip().lower()
            body = AnswerBody(encoding, limit, self._charge)
            asks_at = _BEGINNING_BYTES
            async for piece in response.content.iter_any():
                body.feed(piece)
                if self._enough is not None and body.size >= asks_at:
                    asks_at = 2 * body.size
                    if await self._enough(body.so_far()):
                        return body.so_far(), False
            data = body.finish()
        except TooLargeError as error:
            raise too_large(part, 0, limit) from error
        except BodyError as error:
            raise unavailable(
                f"what its origin sends cannot be used: {error}", part.where
            ) from error
        return data, True


def _headers(response: ClientResponse) -> dict[str, str]:
    """Return the headers that say how long an answer may be used; those that stand several times as one list."""
    headers = response.headers
    return {name: ", ".join(headers.getall(name)) for name in _FRESHNESS if name in headers}


def _reason(error: Exception) -> str:
    if isinstance(error, ClientSSLError | ssl.SSLError):
        return "TLS cannot be spoken with its origin, or its certificate is not trusted"
    if isinstance(error, ClientConnectorError):
        return "its origin cannot be reached"
    return "its origin broke off, or does not speak HTTP"


def _all_of(group: BaseExceptionGroup[SmgError]) -> list[SmgError]:
    found: list[SmgError] = []
    for error in group.exceptions:
        found += _all_of(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
