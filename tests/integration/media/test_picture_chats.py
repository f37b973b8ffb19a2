"""Chats about pictures over several turns: they return to the worker that has them, and are worked on once a node."""

import json
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai
import pytest

from support.media.drawn_pictures import data_url, jpeg, picture_part
from support.processes import node_api
from support.processes.mesh_nodes import MeshNode
from support.processes.mesh_trio import running_trio
from support.processes.node import RunningNode, running_node
from support.processes.node_api import call, ready_at
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

EYES = (
    *("--script", "pictures", "--model", "eyes", "--vision", "qwen3_vl"),
    # Caches that keep all chats, and prompts that take long enough for it to matter where they are cached.
    *("--blocks", "2048", "--prefill-tokens-per-s", "4000"),
)
RULES = "You look at pictures and say what you see, in the order in which they come. " * 8
TURNS = 5


def ask(node: RunningNode, messages: list[Any]) -> tuple[str, int, str]:
    """Return an answer, how many tokens of its prompt were cached, and the worker it came from."""
    client = openai.OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60)
    raw = client.chat.completions.with_raw_response.create(model="eyes", messages=messages)
    answer = raw.parse()
    usage = answer.usage
    assert usage is not None
    cached = usage.prompt_tokens_details
    name = raw.headers["x-request-id"]
    with urllib.request.urlopen(f"{node.url}/v1/cluster/explain/{name}", timeout=30) as told:
        steps = json.loads(told.read())["journeys"][0]["steps"]
    tokens = 0 if cached is None else cached.cached_tokens or 0
    return answer.choices[0].message.content or "", tokens, steps[-1]["worker"]


def _rested(node: MeshNode) -> bool:
    return not any(row["busy"]["wait_ms"] for row in node_api.workers(node).values())


def turn(text: str, *pictures: bytes) -> dict[str, Any]:
    parts: list[Any] = [{"type": "text", "text": text}]
    return {
        "role": "user",
        "content": parts + [picture_part(data_url(each)) for each in pictures],
    }


@pytest.mark.parametrize("contract", ["sglang", "vllm"])
def test_a_chat_about_a_picture_returns_to_the_worker_that_has_it(
    tmp_path: Path, contract: str
) -> None:
    with ExitStack() as stack:
        words = (*EYES, "--contract", contract)
        engines = stack.enter_context(running_simulated(tmp_path, *words, workers=2))
        workers = [f"grpc://{address}" for address in engines.addresses]
        node = stack.enter_context(running_node(tmp_path, workers=workers))
        chats: list[list[Any]] = [
            [{"role": "system", "content": RULES}, turn("Look", jpeg(384, 256, shade=17 * at))]
            for at in range(6)
        ]
        used: list[list[str]] = [[] for _ in chats]
        for number in range(TURNS):
            for messages, seen in zip(chats, used, strict=True):
                said, cached, worker = ask(node, messages)
                assert said.startswith("I see 1: ")
                seen.append(worker)
                if number:
                    assert cached > 150, "the picture is not worked on again"
                messages += [{"role": "assistant", "content": said}, turn(f"And now, {number}?")]
        assert all(len(set(seen)) == 1 for seen in used), used


def test_four_pictures_over_ten_turns_are_worked_on_once_at_each_of_three_nodes(
    tmp_path: Path,
) -> None:
    pictures = [jpeg(320, 240, shade=31 * at) for at in range(4)]
    with ExitStack() as stack:
        engines = stack.enter_context(running_simulated(tmp_path, *EYES, workers=2))
        trio = stack.enter_context(running_trio(tmp_path))
        urls = [f"grpc://{address}" for address in engines.addresses]
        for url in urls:
            assert call(trio["a"], "POST", "/workers", {"url": url}).status == 202
        trio.on_all(lambda node: ready_at(node, urls), "ready")
        messages: list[Any] = [{"role": "system", "content": RULES}]
        used, sent = [], 0
        for number in range(10):
            new = pictures[number : number + 1]
            messages.append(turn(f"Turn {number}", *new))
            shown = min(number + 1, 4)
            sent += shown
            said, _, worker = ask(trio.living[number % 3].node, messages)
            assert said.startswith(f"I see {shown}: ")
            messages.append({"role": "assistant", "content": said})
            used.append(worker)
            # Until it was told, the next node takes the worker for one that is still at this turn.
            trio.on_all(_rested, "knowing that nobody waits")
        assert len(set(used)) == 1, used

        def counted(outcome: str) -> float:
            name = "smg_node_media_cache_total"
            return sum(each.node.metric(name, outcome=outcome) for each in trio.living)

        assert counted("miss") == 4 * 3, "once at each node"
        assert counted("hit") == sent - 12
        assert engines.tally()["media_mistakes"] == 0
