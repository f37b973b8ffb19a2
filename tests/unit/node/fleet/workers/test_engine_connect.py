"""A worker is connected to by what its URL says it speaks, or by what is found out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from smg_chaos.engine.plan_builder import make_plan
from smg_chaos.engine.plans import Wanted
from smg_chaos.engine.servers.grpcio_server import GrpcFace
from smg_chaos.engine.servers.http_server import HttpFace
from smg_chaos.engine.simulator.engine import Engine
from smg_node.config.worker_url import parse_worker_url
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.engine import Contract
from smg_node.engines.engine_options import EngineOptions, unobserved
from smg_node.fleet.workers.allowed_networks import Networks
from smg_node.fleet.workers.engine_connect import engine_opener
from smg_node.system_clock import SystemClock

OPTIONS = EngineOptions(connect_s=1, detect_s=2)
CLOCK = SystemClock()


@asynccontextmanager
async def face(kind: type[HttpFace] | type[GrpcFace]) -> AsyncIterator[str]:
    plan = make_plan(Wanted(settings={"model": "m"}))
    engine = Engine(plan.settings, plan.bundle, plan.script, now_s=CLOCK.monotonic_s())
    one = kind(engine, CLOCK)
    try:
        yield f"127.0.0.1:{await one.listen('127.0.0.1', 0)}"
    finally:
        await one.close()


@pytest.mark.parametrize(
    ("kind", "scheme", "contract"),
    [
        (HttpFace, "http://", Contract.OPENAI),
        (HttpFace, "", Contract.OPENAI),
        (GrpcFace, "grpc://", Contract.VLLM),
        (GrpcFace, "", Contract.VLLM),
    ],
)
async def test_whoever_answers_is_known(
    kind: type[HttpFace] | type[GrpcFace], scheme: str, contract: Contract
) -> None:
    opened = engine_opener(OPTIONS, Networks(()), unobserved)
    async with face(kind) as address:
        engine = await opened(parse_worker_url(f"{scheme}{address}"), None)
        assert engine.contract is contract
        assert await engine.serving(2)
        assert (await engine.card(2)).model == "m"
        await engine.close()


async def test_where_nobody_answers_that_is_said() -> None:
    opened = engine_opener(OPTIONS, Networks(()), unobserved)
    async with face(HttpFace) as address:
        pass
    with pytest.raises(SmgError, match="connect"):
        await opened(parse_worker_url(address), None)
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(SmgError):
            await opened(parse_worker_url(f"127.0.0.1:{port}"), None)


async def test_an_address_outside_the_networks_is_not_called() -> None:
    opened = engine_opener(OPTIONS, Networks(("10.0.0.0/8",)), unobserved)
    for url in ("http://127.0.0.1:1", "127.0.0.1:1"):
        with pytest.raises(SmgError) as caught:
            await opened(parse_worker_url(url), None)
        assert caught.value.kind is ErrorKind.FORBIDDEN
