"""The engine alone, where there is none."""

import time

import pytest

from smg_chaos.bench.children import BenchError, free_ports
from smg_chaos.bench.figures.engine_alone import first_tokens
from smg_chaos.bench.load.workloads import WORKLOADS
from smg_chaos.engine.scripts.bundle import tiny_bundle
from smg_node.engines.engine import Contract

BUNDLE = tiny_bundle("m", vocabulary=1000, context=100)


async def test_an_engine_that_nobody_is_says_so() -> None:
    (port,) = free_ports(1)
    with pytest.raises(BenchError, match="the engine alone does not answer"):
        await first_tokens(
            WORKLOADS["idle"], Contract.VLLM, port, BUNDLE, number=0, warmup_s=0, duration_s=1, clock_s=time.monotonic
        )  # fmt: skip
