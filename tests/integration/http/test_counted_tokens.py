"""`count_tokens` of a real node tells what the answer's usage tells, conversation by conversation."""

import asyncio
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from support.clients.claude_code import DEFERRED, TOOLS, Answer, Conversation, Question
from support.http.chat_client import port_of
from support.http.raw_http import ask
from support.models.prompt_corpus import FOLDER
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import running_simulated
from support.tools.example_counts import example_count

pytestmark = pytest.mark.integration

CONFIG = """
models:
  talks:
    tool_parser: hermes
    chat_template: TEMPLATE
"""
WORDS = ("sea", "tide\n", "Größe", "  ", "<b>", "12", "\U0001f30a")
BURST = 24


def words(chance: Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randrange(1, 8)))


def conversation(chance: Random) -> Conversation:
    questions = []
    for _ in range(chance.randrange(1, 3)):
        answers = [
            Answer(
                words(chance),
                words(chance) if chance.random() < 0.5 else "",
                tuple((chance.choice(TOOLS), words(chance)) for _ in range(chance.randrange(1, 4))),
                tuple(chance.sample(DEFERRED, chance.randrange(3))),
                (words(chance),) if chance.random() < 0.3 else (),
            )
            for _ in range(chance.randrange(3))
        ]
        questions.append(Question(words(chance), (*answers, Answer(words(chance)))))
    return Conversation(questions, system=words(chance), model="talks")


def bodies(count: int) -> list[dict[str, Any]]:
    chance = Random(11)
    return [
        {**list(conversation(chance).requests(chance))[-1], "max_tokens": 1, "stream": False}
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    folder = tmp_path_factory.mktemp("node")
    config = folder / "smg.yaml"
    config.write_text(CONFIG.replace("TEMPLATE", str(FOLDER / "templates" / "chatml.jinja")))
    quick = ("--itl-ms", "0.1", "--ttft-ms", "0.1", "--model", "talks", "--context", "16384")
    with (
        running_simulated(tmp_path_factory.mktemp("engine"), *quick) as engine,
        running_node(
            folder, workers=[f"grpc://{engine.address}"], flags=("--config", str(config))
        ) as running,
    ):
        yield running


async def post(node: RunningNode, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await ask(port_of(node.url), "POST", path, body)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    return found


async def test_what_is_counted_is_what_an_answer_says_was_used(node: RunningNode) -> None:
    for body in bodies(example_count(500)):
        counted = await post(node, "/v1/messages/count_tokens", body)
        usage = (await post(node, "/v1/messages", body))["usage"]
        used = usage["input_tokens"] + usage["cache_read_input_tokens"]
        assert counted["input_tokens"] == used
        assert counted["context_management"] == {"original_input_tokens": used}


async def test_a_burst_of_parts_of_a_prompt_is_counted_at_once(node: RunningNode) -> None:
    part = {"model": "talks", "messages": [{"role": "user", "content": "foo"}], "tools": []}
    asked = (post(node, "/v1/messages/count_tokens?beta=true", part) for _ in range(BURST))
    counted = [answer["input_tokens"] for answer in await asyncio.gather(*asked)]
    assert counted == [counted[0]] * BURST
    assert counted[0] > 0


async def test_what_edits_leave_out_is_counted_twice(node: RunningNode) -> None:
    chance = Random(5)
    body = list(
        Conversation(
            [Question("Go.", (Answer(calls=(("Read", "tide " * 200), ("Read", "sea"))), Answer("x")))],
            model="talks",
        ).requests(chance)
    )[-1]  # fmt: skip
    edit = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "tool_uses", "value": 1},
        "keep": {"type": "tool_uses", "value": 1},
    }
    edited = {**body, "context_management": {"edits": [edit]}}
    counted = await post(node, "/v1/messages/count_tokens", edited)
    before = counted["context_management"]["original_input_tokens"]
    assert before == (await post(node, "/v1/messages/count_tokens", body))["input_tokens"]
    assert counted["input_tokens"] < before
