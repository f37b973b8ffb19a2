"""Real processes: a worker is lost in the middle of an answer, and its client reads on as if nothing were."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.http.chat_client import begin, chat, content_of, finishes_of, port_of, say, text_of
from support.http.raw_http import ask, connect
from support.models.tiny_model import SCRIPTS
from support.processes.mlx_engine import MlxEngine, running_mlx
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, running_simulated

pytestmark = pytest.mark.integration

QUICK = (
    *("--workers.probe-interval-s", "0.5", "--workers.retry-s", "0.2"),
    *("--engine.stall-s", "2", "--engine.first-event-s", "30"),
    *("--routing.policy", "round_robin"),
)
TOKENS = 3000


async def steps_of(port: int, request_id: str) -> list[dict[str, Any]]:
    """Return what the node says happened to a request."""
    told = (await ask(port, "GET", f"/v1/cluster/explain/{request_id}")).json()
    steps = told["journeys"][0]["steps"]
    assert isinstance(steps, list)
    return steps


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningNode, list[MlxEngine]]]:
    """Two real engines that say the same for ever, and a node in front of them."""
    with ExitStack() as stack:
        folders = [tmp_path_factory.mktemp(name) for name in ("one", "two")]
        engines = [
            stack.enter_context(running_mlx(folder, SCRIPTS["endless"], endless=True))
            for folder in folders
        ]
        urls = [f"grpc://{engine.address}?model=endless" for engine in engines]
        node = running_node(tmp_path_factory.mktemp("node"), workers=urls, flags=QUICK)
        yield stack.enter_context(node), engines


async def test_a_real_engine_is_killed_and_its_answer_is_the_one_it_would_have_been(
    pair: tuple[RunningNode, list[MlxEngine]],
) -> None:
    node, engines = pair
    port = port_of(node.url)
    body = chat("endless", max_tokens=TOKENS, temperature=0)
    right = (await say(port, body)).json()
    workers = (await ask(port, "GET", "/workers")).json()["workers"]
    async with connect(port) as client:
        stream = await begin(client, {**body, "stream_options": {"include_usage": True}})
        await stream.until_text()
        used = next(one for one in workers if one["id"] == stream.headers["x-smg-routed-worker-id"])
        victim = next(one for one in engines if one.address in used["url"])
        victim.process.signal(signal.SIGKILL)
        streamed = await stream.to_end()
    assert streamed.done
    assert finishes_of(streamed) == ["length"]
    assert text_of(streamed) == right["choices"][0]["message"]["content"]
    usage = streamed.chunks[-1]["usage"]
    assert usage["completion_tokens"] == right["usage"]["completion_tokens"] == TOKENS
    assert usage["prompt_tokens"] == right["usage"]["prompt_tokens"]
    steps = await steps_of(port, stream.headers["x-request-id"])
    assert [step.get("why") or "broke" for step in steps] == ["first", "broke", "continue"]
    assert steps[0]["worker"] != steps[2]["worker"]


@pytest.mark.parametrize("contract", ["vllm", "sglang", "trtllm", "tokenspeed", "mlx"])
async def test_every_contract_goes_on_where_another_worker_broke(
    tmp_path: Path, contract: str
) -> None:
    faults = ["error:after=5,status=INTERNAL,worker=1,request=1"]
    flags = ("--contract", contract, "--model", "m", "--itl-ms", "2")
    with running_simulated(tmp_path / "engines", *flags, workers=2, faults=faults) as engines:
        urls = [f"grpc://{address}?model=m" for address in engines.addresses]
        with running_node(tmp_path / "node", workers=urls, flags=QUICK) as node:
            port = port_of(node.url)
            # Two requests go to two workers, and one of them breaks the first that it gets.
            answers = [await say(port, chat("m", logprobs=True)) for _ in range(2)]
            assert [content_of(answer) for answer in answers] == [SAYS, SAYS]
            first, second = (answer.json() for answer in answers)
            assert first["choices"] == second["choices"]
            assert first["usage"]["completion_tokens"] == second["usage"]["completion_tokens"]
            steps = [await steps_of(port, answer.headers["x-request-id"]) for answer in answers]
            whys = sorted([step.get("why") or "broke" for step in each] for each in steps)
            assert whys == [["first"], ["first", "broke", "continue"]]


@pytest.mark.parametrize("fault", ["stall:after=5,", "no-complete:", "bad-ids:after=5,"])
async def test_a_stall_or_nonsense_is_gone_on_from_like_a_death(tmp_path: Path, fault: str) -> None:
    spec = f"{fault}worker=1,request=1"
    with running_simulated(
        tmp_path / "engines", "--model", "m", workers=2, faults=[spec]
    ) as engines:
        urls = [f"grpc://{address}?model=m" for address in engines.addresses]
        with running_node(tmp_path / "node", workers=urls, flags=QUICK) as node:
            port = port_of(node.url)
            for _ in range(2):
                async with connect(port) as client:
                    streamed = await (await begin(client, chat("m"))).to_end()
                assert text_of(streamed) == SAYS
                assert finishes_of(streamed) == ["stop"]
                assert streamed.done
