"""Engine connect: opens the engine of a worker, by the protocol its URL names or by detection.

Of a plain `host:port` gRPC is tried first, because an engine that has both is of more use over it; what does
not answer to that and answers to HTTP is a worker that speaks HTTP.
"""

import asyncio
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from smg_node.config.worker_url import HTTP_SCHEMES, OPENAI, SECURE_GRPC, WorkerUrl
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.engine import Contract, Engine
from smg_node.engines.engine_options import EngineOptions, Observe
from smg_node.engines.http.transport import NOT_SERVING_CODE
from smg_node.engines.transport.grpc_status import UNREACHABLE_CODE
from smg_node.engines.transport.tls_trust import Trust
from smg_node.fleet.workers.allowed_networks import Networks
from smg_node.fleet.workers.lifecycle_context import OpenEngine
from smg_node.process_memory import keep

if TYPE_CHECKING:
    from collections.abc import Callable
    from ssl import SSLContext

    from smg_node.engines.http.http_engine import HttpEngine

PROBE_S: Final = 2.0
"""How long somebody may take to answer to HTTP at all."""


def engine_opener(options: EngineOptions, networks: Networks, observe: Observe) -> OpenEngine:
    """Return the function that connects to workers."""

    @cache
    def import_engines() -> None:
        # With the first worker, because a node without any does not hold gRPC and the messages of five
        # contracts (13 MB), and in a thread, because it takes 0.1 s.
        import_module("smg_node.engines.grpc.contract_detection")
        keep()

    @cache
    def trust() -> "SSLContext":
        # One for all: the certificates that a machine trusts are a megabyte.
        from smg_node.engines.http.aiohttp_client import trusting

        return trusting()

    def open_http(url: WorkerUrl, api_key: str | None) -> "HttpEngine":
        return _http_engine(url, api_key, options, observe, trust)

    async def open_grpc(url: WorkerUrl, api_key: str | None) -> Engine:
        contract = Contract(url.contract) if url.contract is not None else None
        secure = await _secured(url, options.trust)
        await asyncio.to_thread(import_engines)
        from smg_node.engines.grpc.contract_detection import open_engine

        return await open_engine(
            url.address,
            replace(options, tls_name=url.tls_name) if url.tls_name else options,
            contract=contract,
            api_key=api_key,
            secure=secure,
            on_event=observe,
        )

    async def found_out(url: WorkerUrl, api_key: str | None) -> Engine:
        try:
            return await open_grpc(url, api_key)
        except SmgError as by_grpc:
            return await _serving(open_http(url, api_key), by_grpc)

    async def open_worker(url: WorkerUrl, api_key: str | None) -> Engine:
        await networks.check(url)
        if url.scheme in HTTP_SCHEMES or url.contract == OPENAI:
            return open_http(url, api_key)
        if url.scheme or url.contract is not None:
            return await open_grpc(url, api_key)
        return await found_out(url, api_key)

    return open_worker


def _http_engine(
    url: WorkerUrl,
    api_key: str | None,
    options: EngineOptions,
    observe: Observe,
    machines: "Callable[[], SSLContext]",
) -> "HttpEngine":
    """Return the engine of an HTTP worker; `machines` returns what this machine trusts, where engine.tls names nobody."""
    # With the first worker that speaks it.
    from smg_node.engines.http.aiohttp_client import AiohttpTransport
    from smg_node.engines.http.http_engine import HttpEngine

    named = options.trust.named
    transport = AiohttpTransport(
        f"{url.scheme or 'http'}://{url.address}",
        connect_s=options.connect_s,
        trust=options.trust.http_context if named else machines,
        renewed=named,
        tls_name=url.tls_name,
    )
    return HttpEngine(transport, options, model=url.model, api_key=api_key, on_event=observe)


async def _secured(url: WorkerUrl, trust: Trust) -> bool:
    """Whether a worker is called over TLS; what we know of certificates has been read then.

    UPSTREAM_FAILED where there is something wrong with it: that is said at once.
    """
    if url.scheme != SECURE_GRPC:
        return False
    try:
        await asyncio.to_thread(trust.context)
    except OSError as error:
        raise SmgError(
            ErrorKind.UPSTREAM_FAILED,
            f"{url.address}: the certificates of engine.tls cannot be used: {error}",
            code=UNREACHABLE_CODE,
        ) from error
    return True


async def _serving(engine: "HttpEngine", by_grpc: SmgError) -> Engine:
    """Return an HTTP engine that is well; else it is closed, and the error says what was seen."""
    try:
        await engine.serving(PROBE_S)
    except SmgError as by_http:
        await engine.close()
        if by_http.code == NOT_SERVING_CODE:
            raise
        # Where nobody answered, what gRPC said of it is as good.
        raise by_grpc from by_grpc.__cause__
    return engine
