"""A real node before a real process with data-parallel ranks: what one rank has cached goes to that rank again."""

import json
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

RANKS = 4
USERS = 12
SOON_S = 20.0
ENGINE = ("--ranks", str(RANKS), "--context", "16384", "--blocks", "4096", "--itl-ms", "1")


@dataclass(frozen=True)
class Told:
    """Where a request went, and what its answer said of its prompt."""

    rank: int
    prompt: int
    cached: int


def ask(node: RunningNode, user: int, *, key: str = "") -> Told:
    """Ask for a short answer to a long prompt of a user's own."""
    text = " ".join(f"user {user} said word number {at}" for at in range(60))
    body = {
        "model": "simulated",
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 2,
    }
    headers = {"content-type": "application/json"}
    if key:
        headers["x-smg-routing-key"] = key
    request = urllib.request.Request(
        f"{node.url}/v1/chat/completions", json.dumps(body).encode(), headers
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        request_id = answer.headers["x-request-id"]
        usage = json.load(answer)["usage"]
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Told(rank_of(node, request_id), usage["prompt_tokens"], cached)


def rank_of(node: RunningNode, request_id: str) -> int:
    url = f"{node.url}/v1/cluster/explain/{request_id}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        journey: Any = json.load(answer)["journeys"][0]
    (chosen,) = [step for step in journey["steps"] if step["step"] == "chosen"]
    assert chosen["rank"] in range(RANKS)
    return int(chosen["rank"])


def until_indexed(node: RunningNode, first: Sequence[Told]) -> None:
    """Return when the node has heard what the engine has of these prompts."""
    blocks = sum(told.prompt // 64 for told in first)
    node.process.wait_until(
        lambda: node.metric("smg_node_kv_index_blocks") >= blocks, "indexed", SOON_S
    )


def engine_and_node(folder: Path, engine: Simulated, *flags: str) -> Any:
    return running_node(folder, workers=[f"grpc://{engine.address}"], flags=flags)


@pytest.mark.parametrize("contract", ["vllm", "sglang", "tokenspeed"])
def test_a_prompt_returns_to_the_rank_that_has_it(tmp_path: Path, contract: str) -> None:
    for name in ("e", "n"):
        (tmp_path / name).mkdir()
    with (
        running_simulated(tmp_path / "e", *ENGINE, "--contract", contract) as engine,
        engine_and_node(tmp_path / "n", engine) as node,
    ):
        first = [ask(node, user) for user in range(USERS)]
        assert all(told.cached < 64 for told in first)
        assert len({told.rank for told in first}) == RANKS
        until_indexed(node, first)
        again = [ask(node, user) for user in reversed(range(USERS))][::-1]
        assert [told.rank for told in again] == [told.rank for told in first]
        assert all(told.cached >= told.prompt - 64 for told in again)


def test_a_routing_key_keeps_its_rank_whatever_its_prompts_are(tmp_path: Path) -> None:
    for name in ("e", "n"):
        (tmp_path / name).mkdir()
    with (
        running_simulated(tmp_path / "e", *ENGINE) as engine,
        engine_and_node(tmp_path / "n", engine, "--policy", "consistent_hashing") as node,
    ):
        keys = [f"team-{number}" for number in range(8)]
        ranks = [
            {ask(node, user, key=key).rank for user in range(at, at + 3)}
            for at, key in enumerate(keys)
        ]
        assert all(len(one) == 1 for one in ranks)
        assert len(set().union(*ranks)) > 1
