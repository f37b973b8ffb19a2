"""Vendor server: a stand-in on a port of its own."""

import logging
from asyncio import AbstractEventLoop, Task
from typing import Any, Final

from aiohttp import web

from smg_chaos.vendor.access.sigv4 import SignedRequest
from smg_chaos.vendor.admin import PREFIX, Admin
from smg_chaos.vendor.delivery import Delivery
from smg_chaos.vendor.errors.envelopes import reply_of
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError
from smg_chaos.vendor.reply import Reply, json_reply
from smg_chaos.vendor.settings import VendorSettings
from smg_chaos.vendor.vendor import Times, Vendor
from smg_node.core.ports import Clock

BODY_MAX_BYTES: Final = 32 * 1024 * 1024
"""Anthropic's limit; others take a little less or more."""
_GRACE_S: Final = 0.1


class VendorServer:
    """Serves one stand-in."""

    def __init__(self, settings: VendorSettings, clock: Clock) -> None:
        self._clock = clock
        self.vendor = Vendor(settings, clock.monotonic_s())
        self._admin = Admin(self.vendor)
        self._runner: web.ServerRunner | None = None
        self.port = 0

    @property
    def base(self) -> str:
        """Return the base URL that clients of this hosting are given."""
        return f"http://127.0.0.1:{self.port}{self.vendor.hosting.base}"

    async def listen(self, host: str, port: int) -> int:
        """Listen; return the port, which was chosen by the system if `port` is 0."""
        # A client that goes away ends its request at once, as vendors' servers do.
        server = web.Server(
            self._serve,
            request_factory=_request,
            handler_cancellation=True,
            access_log=None,
            logger=logging.getLogger(__name__),
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=_GRACE_S)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, backlog=1024).start()
        self.port = self._runner.addresses[0][1]
        return self.port

    async def close(self) -> None:
        """Close the port and every connection."""
        if self._runner is not None:
            await self._runner.cleanup()

    def _times(self) -> Times:
        return Times(self._clock.monotonic_s(), self._clock.now_ms() / 1000)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        reply = await self._reply(request)
        settings = self.vendor.settings
        delivery = Delivery(request, reply, settings.ttft_ms / 1000, settings.itl_ms / 1000)
        try:
            return await delivery.send()
        finally:
            if reply.charge is not None:
                self.vendor.settle(
                    reply.charge, delivery.sent_tokens, self._times(), whole=delivery.whole
                )

    async def _reply(self, request: web.BaseRequest) -> Reply:
        raw_path, _, raw_query = request.raw_path.partition("?")
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            error = VendorError(Reason.TOO_LARGE, "Request exceeds the maximum size", gate=True)
            told = reply_of(error, self.vendor.settings.family(), "req_too_large")
            return json_reply(told.body, told.status, told.headers)
        headers = {name.lower(): value for name, value in request.headers.items()}
        signed = SignedRequest(request.method, raw_path, raw_query, headers, body)
        if raw_path.startswith(PREFIX):
            return self._admin.answer(signed, self._times())
        return self.vendor.answer(signed, self._times())


def _request(
    message: Any,
    payload: Any,
    protocol: Any,
    writer: Any,
    task: "Task[None]",
) -> web.BaseRequest:
    """Return a request whose body may be as large as vendors take."""
    loop: AbstractEventLoop = task.get_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=BODY_MAX_BYTES
    )
