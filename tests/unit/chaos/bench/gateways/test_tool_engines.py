"""Engines and server of tools beside a gateway: how they are started, and what the gateway is told."""

import json
import time
from pathlib import Path

import pytest

from smg_chaos.bench.children import Child
from smg_chaos.bench.gateways.engines import EngineChoice
from smg_chaos.bench.gateways.gateways import KINDS, Place, check_tools, wanted_of
from smg_chaos.bench.gateways.tool_engines import Beside, start_beside

ABLE = [name for name, kind in KINDS.items() if kind.tools is not None]


@pytest.mark.parametrize("name", ABLE)
def test_a_gateway_knows_both_engines_and_the_server(name: str, tmp_path: Path) -> None:
    command = KINDS[name].tools
    assert command is not None
    beside = Beside(4004, "http://127.0.0.1:4005/mcp", ())
    words = command(Place(4001, 4002, 4003, tmp_path, tmp_path, beside))
    workers = [words[at + 1] for at, word in enumerate(words) if word == "--worker"]
    assert workers == ["grpc://127.0.0.1:4003", "grpc://127.0.0.1:4004"]
    servers = json.loads(Path(words[words.index("--mcp") + 1]).read_text())["servers"]
    assert servers == {"bench": {"url": "http://127.0.0.1:4005/mcp", "trust": "trusted"}}


def test_gateways_that_have_no_tools_are_refused_with_those_that_have() -> None:
    check_tools([wanted_of(name) for name in ABLE])
    with pytest.raises(ValueError, match=r"smg: not with tools; .* smg-node"):
        check_tools([wanted_of("smg"), wanted_of("smg-node")])


async def test_both_are_started_and_say_where_they_are(tmp_path: Path) -> None:
    started: list[Child] = []
    try:
        beside = await start_beside(
            EngineChoice(), tmp_path, time.monotonic, result_bytes=123, started=started.append
        )
        assert beside.server_url.startswith("http://127.0.0.1:")
        assert beside.server_url.endswith("/mcp")
        assert beside.engine_port > 0
        assert list(beside.children) == started
        assert '"bytes": 123' in " ".join(started[0].command)
    finally:
        for child in started:
            child.kill()
