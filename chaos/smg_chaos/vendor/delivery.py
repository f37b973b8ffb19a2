"""Delivery of replies over HTTP: paced frames, and every way in which they break on purpose."""

import asyncio
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from smg_chaos.vendor.apis.call import Frame
from smg_chaos.vendor.faults.fault import Fault
from smg_chaos.vendor.reply import Reply

_GARBAGE: Final = b'\x00\xfe\xffdata: {"choices": [{]]\r\n\r\n<<<'
_NEVER: Final = 1e9
_BREAKING: Final = frozenset(("cut", "stall", "garbage", "error", "no-end", "pause"))


class _CutError(Exception):
    """The connection was broken off on purpose."""


class Delivery:
    """One reply on its way. `sent_tokens` and `whole` say what came of it."""

    def __init__(self, request: web.BaseRequest, reply: Reply, ttft_s: float, itl_s: float) -> None:
        self._request = request
        self._reply = reply
        self._ttft_s = ttft_s
        self._itl_s = itl_s
        self.sent_tokens = 0
        self.whole = False

    async def send(self) -> web.StreamResponse:
        """Send it, or as much of it as its fault leaves."""
        try:
            return await self._send()
        except _CutError:
            return web.Response()  # which finds no connection

    async def _send(self) -> web.StreamResponse:
        reply, fault = self._reply, self._reply.fault
        name = "" if fault is None else fault.name
        if fault is not None and name == "delay":
            await asyncio.sleep(fault.seconds())
        if name == "hang":
            await asyncio.sleep(_NEVER)
        if reply.frames is None:
            return await self._body(fault)
        if self._ttft_s:
            await asyncio.sleep(self._ttft_s)
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        if fault is not None and name == "length":
            total = sum(len(frame.content) for frame in reply.frames)
            response.content_length = max(0, total + fault.number("by"))
        elif self._request.version >= (1, 1):
            response.enable_chunked_encoding()
        if fault is not None and name == "cut" and not fault.number("after"):
            self._cut()
        await response.prepare(self._request)
        if fault is not None and (name in _BREAKING or name == "drip"):
            await self._broken(response, reply.frames, fault)
        else:
            await self._paced(response, reply.frames)
            self.whole = True
        if fault is not None and name == "length":
            self._cut()
        await response.write_eof()
        return response

    def _cut(self) -> None:
        """Break the connection off."""
        if self._request.transport is not None:
            self._request.transport.abort()
        raise _CutError

    async def _paced(self, response: web.StreamResponse, frames: Sequence[Frame]) -> None:
        if not self._itl_s:
            self.sent_tokens += sum(frame.tokens for frame in frames)
            await response.write(b"".join(frame.content for frame in frames))
            return
        for frame in frames:
            if frame.tokens:
                await asyncio.sleep(self._itl_s * frame.tokens)
            await response.write(frame.content)
            self.sent_tokens += frame.tokens

    async def _broken(
        self, response: web.StreamResponse, frames: Sequence[Frame], fault: Fault
    ) -> None:
        name = fault.name
        if name == "drip":
            await self._drip(response, b"".join(frame.content for frame in frames), fault)
            self.sent_tokens += sum(frame.tokens for frame in frames)
            self.whole = True
            return
        if name == "no-end":
            last = max((at for at, frame in enumerate(frames) if frame.tokens), default=-1)
            await self._paced(response, frames[: last + 1])
            return
        after = fault.number("after")
        await self._paced(response, frames[:after])
        if name == "cut":
            # What was written has to be on the wire before the connection goes.
            await asyncio.sleep(0)
            self._cut()
        elif name == "stall":
            await asyncio.sleep(_NEVER)
        elif name == "garbage":
            await response.write(_GARBAGE)
        elif name == "error":
            await response.write(self._reply.failure)
        else:
            await asyncio.sleep(fault.seconds())
            await self._paced(response, frames[after:])
            self.whole = True

    async def _drip(self, response: web.StreamResponse, content: bytes, fault: Fault) -> None:
        size = fault.number("bytes")
        for at in range(0, len(content), size):
            await response.write(content[at : at + size])
            await asyncio.sleep(fault.seconds())

    async def _body(self, fault: Fault | None) -> web.StreamResponse:
        """Send a body in one piece; what breaks streams breaks it in the middle."""
        reply, charge = self._reply, self._reply.charge
        tokens = charge.cost.answer if charge is not None else 0
        if charge is not None and (self._ttft_s or self._itl_s):
            await asyncio.sleep(self._ttft_s + self._itl_s * tokens)
        if fault is None or fault.name not in (*_BREAKING, "length", "drip"):
            self.sent_tokens, self.whole = tokens, True
            response = web.Response(status=reply.status, headers=reply.headers, body=reply.body)
            await response.prepare(self._request)
            await response.write_eof()
            return response
        return await self._broken_body(fault)

    async def _broken_body(self, fault: Fault) -> web.StreamResponse:
        reply, name = self._reply, fault.name
        content = {"garbage": _GARBAGE, "error": reply.failure}.get(name, reply.body)
        by = fault.number("by") if name == "length" else 0
        stream = web.StreamResponse(status=reply.status, headers=reply.headers)
        stream.content_length = max(0, len(content) + by)
        if name == "cut" and not fault.number("after"):
            self._cut()
        await stream.prepare(self._request)
        if name == "drip":
            await self._drip(stream, content, fault)
        elif name in ("cut", "stall", "no-end", "pause"):
            await stream.write(content[: len(content) // 2])
            if name == "pause":
                await asyncio.sleep(fault.seconds())
                await stream.write(content[len(content) // 2 :])
            else:
                await asyncio.sleep(_NEVER if name == "stall" else 0)
                self._cut()
        else:
            await stream.write(content)
            if by > 0:
                await asyncio.sleep(0)
                self._cut()
        self.whole = name in ("drip", "pause")
        await stream.write_eof()
        return stream
