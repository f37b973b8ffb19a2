"""Pairs of workers as real processes: a client cannot tell them from a worker that answers alone."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import pytest
from anthropic import Anthropic

from support.engines.pair_answers import (
    ALONE,
    ANY_PORT,
    BLOCK,
    COMPLETIONS,
    MAKES,
    QUICK,
    SPEAK,
    body_of,
    cached_of,
    chosen,
    streamed_of,
    urls_of,
    whole_of,
)
from support.http.chat_client import CHAT, JSON, content_of, port_of, say
from support.http.raw_http import ask
from support.processes.mesh_nodes import smg_admin
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

ASKED: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "a chat": (CHAT, {}),
    "two choices": (CHAT, {"n": 2}),
    "log probabilities": (CHAT, {"logprobs": True, "top_logprobs": 2}),
    "a completion": (COMPLETIONS, {}),
    "two completions of two prompts": (COMPLETIONS, {"n": 2, "prompt": ["Once upon", "A time"]}),
    "the prompt's log probabilities": (COMPLETIONS, {"echo": True, "logprobs": 2}),
}


@dataclass(frozen=True)
class Scene:
    """A node before a pair of each make, and an engine that answers alone."""

    node: RunningNode
    engines: Mapping[str, Simulated]

    @property
    def port(self) -> int:
        """The port of its API."""
        return port_of(self.node.url)

    async def workers(self, model: str, role: str) -> list[str]:
        """Return the ids of a model's workers that play a part."""
        rows = (await ask(self.port, "GET", "/workers")).json()["workers"]
        return [row["id"] for row in rows if (row["model"], row["role"]) == (model, role)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    def run(name: str, *flags: str, workers: int = 1) -> Simulated:
        scratch = tmp_path_factory.mktemp(name)
        return stack.enter_context(running_simulated(scratch, *flags, *SPEAK, workers=workers))

    store = ("--kv-store", str(tmp_path_factory.mktemp("blocks")))
    with ExitStack() as stack:
        engines = {ALONE: run(ALONE, "--model", ALONE)}
        for make, flags in MAKES.items():
            said = (*flags, "--model", make, *(store if make == "store" else ()))
            prefill = ("--role", "prefill", *ANY_PORT)
            engines[f"{make}/prefill"] = run("prefill", *said, *prefill, workers=2)
            engines[f"{make}/decode"] = run("decode", *said, "--role", "decode")
        urls = [url for one in engines.values() for url in urls_of(one)]
        node = running_node(tmp_path_factory.mktemp("node"), workers=urls, flags=QUICK)
        yield Scene(stack.enter_context(node), engines)


# ── What a pair says ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (make, kind)
        for make in MAKES
        for kind in ASKED
        # Its contract has no words for them.
        if (make, kind) != ("tokenspeed", "the prompt's log probabilities")
    ],
)
async def test_a_pair_says_what_a_worker_alone_says(scene: Scene, make: str, kind: str) -> None:
    path, fields = ASKED[kind]
    alone, paired = body_of(path, ALONE, **fields), body_of(path, make, **fields)
    right = whole_of(await ask(scene.port, "POST", path, alone, JSON))
    assert whole_of(await ask(scene.port, "POST", path, paired, JSON)) == right
    for body in (alone, paired):
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    right = streamed_of(await ask(scene.port, "POST", path, alone, JSON))
    assert streamed_of(await ask(scene.port, "POST", path, paired, JSON)) == right


@pytest.mark.parametrize("make", MAKES)
def test_a_pair_answers_the_messages_api_as_a_worker_alone_does(scene: Scene, make: str) -> None:
    turns: list[Any] = [{"role": "user", "content": "Once upon a time"}]
    told = []
    with Anthropic(
        api_key="none", base_url=scene.node.url, max_retries=0, _strict_response_validation=True
    ) as client:
        for model in (ALONE, make):
            asked: dict[str, Any] = {"model": model, "max_tokens": 24, "messages": turns}
            whole = client.messages.create(**asked)
            with client.messages.stream(**asked) as events:
                streamed = events.get_final_message()
            told += [told_by(whole.to_dict()), told_by(streamed.to_dict())]
    assert told == [told[0]] * 4
    assert told[0]["stop_reason"] == "max_tokens"
    assert told[0]["output_tokens"] == 24
    assert [block["type"] for block in told[0]["content"]] == ["text"]


def told_by(message: dict[str, Any]) -> dict[str, Any]:
    """Return what a message says, but for names and where its prompt was cached."""
    usage = message["usage"]
    return {
        "content": [{"type": one["type"], "text": one.get("text")} for one in message["content"]],
        "stop_reason": message["stop_reason"],
        "prompt_tokens": usage["input_tokens"] + usage["cache_read_input_tokens"],
        "output_tokens": usage["output_tokens"],
    }


@pytest.mark.parametrize("make", MAKES)
async def test_a_pair_stops_where_it_should(scene: Scene, make: str) -> None:
    text = content_of(await say(scene.port, body_of(CHAT, ALONE)))
    at = next(at for at in range(len(text) // 2, len(text) - 3) if text[at : at + 3].isascii())
    stop = text[at : at + 3]
    answer = await say(scene.port, body_of(CHAT, make, stop=[stop]))
    assert content_of(answer) == text[: text.index(stop)]
    assert answer.json()["choices"][0]["finish_reason"] == "stop"
    first = content_of(await say(scene.port, body_of(CHAT, make, max_tokens=1)))
    assert first
    assert text.startswith(first)


@pytest.mark.parametrize(
    "field",
    [
        {"data_parallel_rank": 0},
        {"bootstrap_room": 7},
        {"bootstrap_host": "here"},
        {"bootstrap_port": 8998},
        {"kv_transfer_params": {"do_remote_decode": True}},
    ],
)
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_what_the_gateway_tells_a_pair_no_client_may(
    scene: Scene, path: str, field: dict[str, Any]
) -> None:
    answer = await ask(scene.port, "POST", path, body_of(path, "sglang", **field), JSON)
    assert answer.status == 400, answer.body
    assert answer.error()["param"] == next(iter(field))


# ── Who is chosen ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", ["sglang", "nixl", "mooncake", "store"])
async def test_a_talk_returns_to_the_worker_that_has_worked_its_prompt_off(
    scene: Scene, make: str
) -> None:
    for talk in range(4):
        turns = [{"role": "user", "content": f"{make}, {talk}: " + "once upon a time " * 40}]
        went, before = set(), 0
        for turn in range(3):
            answer = await say(scene.port, body_of(CHAT, make, messages=turns))
            (first, prefill), (second, _) = await chosen(scene.port, answer)
            assert (first, second) == ("prefill", "decode")
            went.add(prefill)
            if turn:
                assert cached_of(answer) > before - BLOCK
            before = answer.json()["usage"]["prompt_tokens"]
            said = {"role": "assistant", "content": content_of(answer)}
            turns = [*turns, said, {"role": "user", "content": "And then?"}]
        assert len(went) == 1


async def test_an_operator_is_told_of_both_halves(scene: Scene) -> None:
    answer = await say(scene.port, body_of(CHAT, "sglang"))
    said = smg_admin("--url", scene.node.url, "explain", answer.headers["x-request-id"])
    assert said.code == 0, said.err
    for (role, worker), words in zip(
        await chosen(scene.port, answer),
        ["to work the prompt off", "to draw the answer"],
        strict=True,
    ):
        assert worker in await scene.workers("sglang", role)
        assert words in said.out
    assert answer.headers["x-smg-routed-worker-id"] in await scene.workers("sglang", "decode")


@pytest.mark.parametrize("make", ["sglang", "nixl"])
async def test_a_client_that_names_one_half_gets_it_with_a_partner(scene: Scene, make: str) -> None:
    prefills, decodes = [await scene.workers(make, role) for role in ("prefill", "decode")]
    assert (len(prefills), len(decodes)) == (2, 1)
    for target in (*prefills, *decodes):
        wants = {**JSON, "x-smg-target-worker": target}
        answer = await ask(scene.port, "POST", CHAT, body_of(CHAT, make), wants)
        content_of(answer)
        (_, prefill), (_, decode) = await chosen(scene.port, answer)
        assert target in (prefill, decode)
        assert (prefill in prefills, decode in decodes) == (True, True)
