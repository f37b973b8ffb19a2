"""What a short chat costs a whole node, from the first byte in to the last byte out: the interpreter's instructions.

Counted, not timed, so that a busy machine changes little: only what a node does by the clock is more, the slower it is. Measured: 5,100
whole and 6,300 streamed, with the small tokenizer of the simulated engine, where what has a `.pxd` is machine code. What is
allowed is an eighth more.
"""

import http.client
import json
import sys
from pathlib import Path
from typing import Final

import msgspec
import pytest

from smg_chaos.bench.figures.counted_gateway import Counted
from support.processes.node import running_node
from support.processes.simulated_engines import running_simulated

WARM: Final = 60
COUNT: Final = 60
ALLOWED: Final = {"whole": 5_800, "streamed": 7_100}
"""What is executed for one request."""


@pytest.mark.parametrize("kind", ["whole", "streamed"])
def test_a_short_chat_stays_within_its_budget(tmp_path: Path, kind: str) -> None:
    found = tmp_path / "counted.json"
    numbers = (str(found), str(WARM), str(COUNT))
    command = (sys.executable, "-m", "smg_chaos.bench.figures.counted_gateway", *numbers, "--")
    engine, node = tmp_path / "engine", tmp_path / "node"
    engine.mkdir()
    node.mkdir()
    quick = ("--itl-ms", "0", "--ttft-ms", "0", "--coalesce", "1", "--server", "h2")
    with running_simulated(engine, *quick) as simulated:
        workers = [f"grpc://{simulated.address}"]
        with running_node(node, workers=workers, command=command) as running:
            ask(running.url, streamed=kind == "streamed")
    counted = msgspec.json.decode(found.read_bytes(), type=Counted)
    each = sum(one.instructions for one in counted.functions) / counted.requests
    worst = [f"{one.instructions / COUNT:.0f} {one.name}" for one in counted.functions[:20]]
    assert 3_000 < each < ALLOWED[kind], f"{each:.0f} instructions; most of them: {worst}"


def ask(url: str, *, streamed: bool) -> None:
    """Ask so often that all that count have been answered, one after the other; readiness was asked before."""
    line = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    for number in range(WARM + COUNT + 1):
        body = {
            "model": "simulated",
            "messages": [{"role": "user", "content": f"question {number}"}],
            "max_tokens": 8,
            "stream": streamed,
        }
        line.request(
            "POST",
            "/v1/chat/completions",
            json.dumps(body),
            {"content-type": "application/json", "authorization": "Bearer any"},
        )
        answer = line.getresponse()
        said = answer.read()
        assert answer.status == 200, said
        assert b'"usage"' in said or streamed
    line.close()
