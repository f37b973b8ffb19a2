"""Pair relay: one relayed request on a prefill and a decode HTTP worker, as one answer.

See `pairs/pair_calls` for how the calls run, `pair_bodies` for their requests. The prefill worker's
answer is read to its end and dropped. If it is a client error, the decode worker is not called, or
stopped.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.engine import Engine, Prefilled
from smg_node.engines.http.http_engine import HttpEngine, RelayRequest
from smg_node.engines.http.response_stream import HttpStream
from smg_node.engines.transport.grpc_status import Verdict, verdict
from smg_node.pipeline.pairs.engine_pair import Partners
from smg_node.pipeline.pairs.pair_calls import BLAME_S, Fault, Leg, PairCalls
from smg_node.pipeline.relay.pairs.pair_bodies import (
    ANSWER_MAX_BYTES,
    of_decode,
    of_prefill,
    prefilled,
)
from smg_node.pipeline.relay.relay_call import Head, MissingError, RelayCall, path_of, refusal
from smg_node.pipeline.relay.relay_request import Api, Relayable
from smg_node.pipeline.relay.response_filter import ResponseFilter
from smg_node.pipeline.relay.worker_answers import error_in, failure_of


class RelayPair:
    """The two calls of a request. `prefilled` is called once, when the prefill worker is done;
    `spoke` at the first word. `parsed` is as in `RelayCall`.

    `by_prefill` is whether the prefill worker refused the request.
    """

    def __init__(
        self,
        partners: Partners,
        asked: Relayable,
        passage: ResponseFilter,
        *,
        prefilled: Callable[[Prefilled], None],
        spoke: Callable[[], None],
        parsed: bool = False,
    ) -> None:
        self.by_prefill = False
        self._partners = partners
        self._asked = asked
        self._tell = prefilled
        self._first = _http(partners.prefill)
        self._second = _http(partners.decode)
        self._parsed = parsed
        self._call = RelayCall(
            self._second,
            asked,
            passage,
            spoke=spoke,
            known=self._prompt_known,
            parsed=parsed,
        )
        self._over = asyncio.Event()
        """Set when the first call is over."""
        self._legs: PairCalls[Head | bytes] = PairCalls()
        self._found: Prefilled | None = None

    @property
    def fault(self) -> Fault | None:
        """Leg that caused the failure; None while there is none."""
        return self._legs.fault

    @property
    def broke(self) -> Leg | None:
        """Which of the two calls broke; None while none has."""
        return self._legs.broke

    async def pieces(self, request: RelayRequest) -> AsyncGenerator[Head | bytes, None]:
        """Yield the answer's head, then its body; see `RelayCall`. Path and body of `request` are not looked at."""
        try:
            async with aclosing(self._told(request)) as pieces:
                async for piece in pieces:
                    yield piece
        except _RefusedError as refused:
            self.by_prefill = True
            raise refused.error from refused

    def _told(self, request: RelayRequest) -> AsyncGenerator[Head | bytes, None]:
        async def prefill() -> None:
            await self._prefill(request)

        def decode(left_s: float) -> AsyncGenerator[Head | bytes, None]:
            return self._decode(request, left_s)

        if self._partners.style == "room":
            return self._legs.at_once(prefill, decode(request.timeout_s))
        return self._legs.in_turn(prefill, decode, timeout_s=request.timeout_s)

    async def _prefill(self, request: RelayRequest) -> None:
        try:
            await self._work_off(request)
        finally:
            self._over.set()

    async def _prompt_known(self) -> None:
        """Wait for the prefill worker's figures on the prompt, for a moment at most."""
        try:
            async with asyncio.timeout(BLAME_S):
                await self._over.wait()
        except TimeoutError:
            return

    async def _work_off(self, request: RelayRequest) -> None:
        engine, asked = self._first, self._asked
        body = of_prefill(asked, engine.served_name, self._partners)
        path = path_of(engine, asked.api)
        stream = await engine.relay(
            replace(request, path=path, body=body, streamed=False, prefill=True)
        )
        try:
            if stream.status >= 300:
                raise await self._refusal(stream, path)
            body = await _all_of(stream)
            if (said := error_in(body)) is not None:
                raise _blamed(failure_of(said, self._told_in))
            self._found = found = prefilled(body)
        finally:
            stream.close()
        self._tell(found)

    @property
    def _told_in(self) -> Api | None:
        """The API in whose terms the client is told of a mistake."""
        return None if self._parsed else self._asked.api

    async def _refusal(self, stream: HttpStream, path: str) -> Exception:
        api = self._asked.api
        error = await refusal(self._first, stream, api, path, told_in=self._told_in)
        return _lacking(path) if isinstance(error, MissingError) else _blamed(error)

    async def _decode(
        self, request: RelayRequest, left_s: float
    ) -> AsyncGenerator[Head | bytes, None]:
        engine, asked = self._second, self._asked
        body = of_decode(asked, engine.served_name, self._partners, self._found)
        path = path_of(engine, asked.api)
        call = self._call.pieces(replace(request, path=path, body=body, timeout_s=left_s))
        try:
            async with aclosing(call) as pieces:
                async for piece in pieces:
                    yield piece
        except MissingError as error:
            raise _lacking(path) from error


class _RefusedError(Exception):
    """The prefill worker refused the request."""

    def __init__(self, error: SmgError) -> None:
        super().__init__(error.message)
        self.error = error


def _blamed(error: Exception) -> Exception:
    """Return the error as one that ends the pair without blame, if it is about the request."""
    if not isinstance(error, SmgError) or error.status >= 500:
        return error
    return _RefusedError(error) if verdict(error) is Verdict.NEITHER else error


def _lacking(path: str) -> SmgError:
    """Return the error of a half of a pair that does not have an API."""
    return SmgError(ErrorKind.UPSTREAM_FAILED, f"the worker does not have {path}")


async def _all_of(stream: HttpStream) -> bytes:
    """Read an answer to its end and return it; UPSTREAM_FAILED if it is longer than any could be."""
    parts: list[bytes] = []
    size = 0
    while piece := await stream.read():
        parts.append(piece)
        size += len(piece)
        if size > ANSWER_MAX_BYTES:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                f"the worker's answer to the prompt is larger than {ANSWER_MAX_BYTES} bytes",
                code="upstream_transfer",
            )
    return b"".join(parts)


def _http(engine: Engine) -> HttpEngine:
    assert isinstance(engine, HttpEngine), "workers of relayed models speak HTTP"
    return engine
