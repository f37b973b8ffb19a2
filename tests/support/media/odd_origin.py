"""Origin of pictures that answers as its paths say: slowly, endlessly, untruly, or as it should."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

PICTURE: Final = b"\x89PNG" + bytes(range(256)) * 4
LASTING: Final = PICTURE * 100
BOMB: Final = gzip.compress(bytes(50_000_000))


class OddOrigin:
    """A server that answers by path, and knows who asked it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.open = self.most = 0
        self.port = 0
        self.cancelled = 0
        self.addresses: dict[str, list[str]] = {"pics.test": ["127.0.0.1"]}
        self.lookups: list[str] = []

    def url(self, path: str, host: str = "pics.test") -> str:
        return f"http://{host}:{self.port}/{path}"

    async def lookup(self, host: str, port: int) -> list[str]:
        self.lookups.append(host)
        found = self.addresses.get(host.rstrip("."))
        if not found:
            raise OSError("no such host")
        return found

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.path[1:]
        self.asked.append(request.path_qs[1:])
        self.headers.append({key.lower(): value for key, value in request.headers.items()})
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            answer: web.StreamResponse = await getattr(self, f"_{name.partition('/')[0]}")(request)
            return answer
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.open -= 1

    async def _picture(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=PICTURE, headers={"set-cookie": "a=b"})

    async def _slowly(self, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.05)
        return web.Response(body=PICTURE)

    async def _lasting(self, request: web.Request) -> web.StreamResponse:
        headers = {"cache-control": "public, max-age=600", "content-length": str(len(LASTING))}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for begin in range(0, len(LASTING), 5_000):
            await response.write(LASTING[begin : begin + 5_000])
            await asyncio.sleep(0.01)
        return response

    async def _fresh(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=PICTURE, headers={"cache-control": request.query["said"]})

    async def _missing(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=404, text="SECRET WORDS")

    async def _empty(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"")

    async def _never(self, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async def _packed(self, request: web.Request) -> web.StreamResponse:
        body, headers = gzip.compress(PICTURE), {"content-encoding": "gzip"}
        return web.Response(body=body, headers=headers)

    async def _bomb(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=BOMB, headers={"content-encoding": "gzip"})

    async def _large(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=bytes(100_001))

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(4096))

    async def _drip(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.05)

    async def _liar(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-length": "5000"})
        await response.prepare(request)
        await response.write(b"short")
        assert request.transport is not None
        request.transport.close()
        return response

    async def _hop(self, request: web.Request) -> web.StreamResponse:
        left = int(request.path.rpartition("/")[2])
        to = f"/hop/{left - 1}" if left > 1 else "/picture"
        return web.Response(status=302, headers={"location": to})

    async def _to(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=307, headers={"location": request.query["where"]})


@asynccontextmanager
async def odd_origin() -> AsyncIterator[OddOrigin]:
    """Run an origin at a free port of this machine."""
    origin = OddOrigin()
    app = web.Application()
    app.router.add_route("*", "/{name:.*}", origin.answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    origin.port = runner.addresses[0][1]
    try:
        yield origin
    finally:
        await runner.cleanup()
