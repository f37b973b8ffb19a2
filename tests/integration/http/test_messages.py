"""The Messages API of real nodes, judged by the official client: gRPC and HTTP workers, several processes, two nodes."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, BadRequestError

from smg_mesh.io.security.ring_key import make_key
from support.http.chat_client import port_of
from support.http.raw_http import ask
from support.processes.mesh_nodes import MeshNode, flags_of, mesh_node, until
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

CONFIG = """
models:
  thinks:
    reasoning_parser: qwen3
    chat_template: TEMPLATE
  calls:
    tool_parser: hermes
"""
# Shows a thought of the history, as few templates do for all of them.
TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.reasoning_content or '' }}|{{ m.content }}{% endfor %}[assistant]"
HI: Any = [{"role": "user", "content": "Hi"}]
TOOLS: Any = [{"name": "get_weather", "input_schema": {"type": "object", "properties": {}}}]
OMITTED: Any = {"type": "adaptive", "display": "omitted"}
THOUGHT = "The question asks for a number. Let me think about it.\n"


def client(url: str) -> Anthropic:
    return Anthropic(
        api_key="none", base_url=url, max_retries=0, timeout=60, _strict_response_validation=True
    )


def plain(message: Any) -> list[dict[str, Any]]:
    return list(message["content"])


def prompt_tokens(message: Any) -> int:
    usage = message["usage"]
    return int(usage["input_tokens"] + usage["cache_read_input_tokens"])


def output_tokens(message: Any) -> int:
    return int(message["usage"]["output_tokens"])


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    quick = ("--itl-ms", "0.5", "--ttft-ms", "1")
    http = ("--contract", "openai", "--model", "over-http")
    temporary = tmp_path_factory.mktemp
    with (
        running_simulated(temporary("a"), *quick, "--model", "says") as says,
        running_simulated(
            temporary("b"), *quick, "--model", "thinks", "--script", "reasoning"
        ) as thinks,
        running_simulated(
            temporary("c"), *quick, "--model", "calls", "--script", "tool-call"
        ) as calls,
        running_simulated(temporary("d"), *quick, *http) as over_http,
    ):
        grpc = [f"grpc://{one.address}" for one in (says, thinks, calls)]
        yield [*grpc, f"http://{over_http.address}"]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("config")
    (folder / "thoughts.jinja").write_text(TEMPLATE)
    path = folder / "smg.yaml"
    path.write_text(CONFIG.replace("TEMPLATE", str(folder / "thoughts.jinja")))
    return path


@pytest.fixture(scope="module", params=[0, 2])
def node(
    request: pytest.FixtureRequest,
    workers: list[str],
    config: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningNode]:
    flags = ("--config", str(config), "--processes", str(request.param))
    with running_node(tmp_path_factory.mktemp("node"), workers=workers, flags=flags) as running:
        yield running


@pytest.mark.parametrize("model", ["says", "over-http"])
def test_a_text_is_the_same_streamed_and_whole(node: RunningNode, model: str) -> None:
    with client(node.url) as one:
        whole = one.messages.create(model=model, max_tokens=64, messages=HI)
        with one.messages.stream(model=model, max_tokens=64, messages=HI) as events:
            put_together = events.get_final_message()
    for message in (whole.to_dict(), put_together.to_dict()):
        (block,) = plain(message)
        assert block["type"] == "text"
        assert block["text"].startswith("Hello from a simulated engine")
        assert (message["model"], message["stop_reason"]) == (model, "end_turn")
        assert prompt_tokens(message) > 0
        assert output_tokens(message) > 10


def test_a_call_has_an_id_and_arguments_of_this_api(node: RunningNode) -> None:
    with client(node.url) as one:
        asked: dict[str, Any] = {"model": "calls", "max_tokens": 64, "messages": HI, "tools": TOOLS}
        whole = one.messages.create(**asked)
        with one.messages.stream(**asked) as events:
            put_together = events.get_final_message()
    for message in (whole.to_dict(), put_together.to_dict()):
        text, call = plain(message)
        assert (text["type"], text["text"]) == ("text", "Let me look.")
        assert call["type"] == "tool_use"
        assert (call["name"], call["input"]) == ("get_weather", {"city": "Paris"})
        assert call["id"].startswith("toolu_")
        assert message["stop_reason"] == "tool_use"


def test_a_thought_is_shown_and_signed(node: RunningNode) -> None:
    with client(node.url) as one:
        message = one.messages.create(model="thinks", max_tokens=64, messages=HI)
    thought, text = message.content
    assert thought.type == "thinking"
    assert thought.thinking == THOUGHT
    assert thought.signature.startswith("smg1.")
    assert text.type == "text"
    assert text.text == "The answer is 42."
    assert message.usage.output_tokens_details is not None
    assert message.usage.output_tokens_details.thinking_tokens > 5


def test_the_end_of_an_answer_has_its_reason(node: RunningNode) -> None:
    with client(node.url) as one:
        for more, reason, matched in (
            ({"max_tokens": 3}, "max_tokens", None),
            ({"max_tokens": 64, "stop_sequences": ["zebras"]}, "stop_sequence", "zebras"),
            ({"max_tokens": 0}, "max_tokens", None),
            ({"max_tokens": 20_000}, "end_turn", None),
        ):
            asked: dict[str, Any] = {"model": "says", "messages": HI, **more}
            message = one.messages.create(**asked)
            assert (message.stop_reason, message.stop_sequence) == (reason, matched)
            assert bool(message.content) == (more["max_tokens"] != 0)


def test_a_prompt_that_is_too_long_is_said_in_the_clients_words(node: RunningNode) -> None:
    long: Any = [{"role": "user", "content": "word " * 200_000}]
    with client(node.url) as one, pytest.raises(BadRequestError) as found:
        one.messages.create(model="says", max_tokens=5, messages=long)
    body = found.value.body
    assert isinstance(body, dict)
    assert body["request_id"] == found.value.request_id
    words = body["error"]["message"].split()
    assert words[:4] == ["prompt", "is", "too", "long:"]
    assert int(words[4]) > int(words[7])
    assert (words[5:7], words[8:]) == (["tokens", ">"], ["maximum"])


# ── Thoughts that clients carry ──────────────────────────────────────────────


@pytest.fixture(scope="module")
def pair(
    workers: list[str], config: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[MeshNode]]:
    """Two nodes of a cluster with a keyring, the second one of several processes."""
    folder = tmp_path_factory.mktemp("pair")
    key = folder / "mesh.key"
    key.write_text(make_key())
    key.chmod(0o600)
    more = ["--config", str(config), "--worker", workers[1]]
    with mesh_node(folder / "a", [*flags_of("a", key=key), *more]) as one:
        join = [*flags_of("b", key=key, join=[one.mesh]), *more, "--processes", "2"]
        with mesh_node(folder / "b", join) as other:
            for each in (one, other):
                each.awaits_ready()
                until(partial(healthy, each), "behind a worker")
            yield [one, other]


def healthy(node: MeshNode) -> bool:
    return node.node.status("/health") == 200


async def counted(node: MeshNode, thought: dict[str, str] | None) -> int:
    said = [*([thought] if thought else []), {"type": "text", "text": "The answer is 42."}]
    turns = [*HI, {"role": "assistant", "content": said}, {"role": "user", "content": "Sure?"}]
    keep = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    body = {"model": "thinks", "messages": turns, "context_management": keep}
    answer = await ask(port_of(node.node.url), "POST", "/v1/messages/count_tokens", body)
    assert answer.status == 200, answer.body
    return int(answer.json()["input_tokens"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("sealing", [0, 1])
async def test_a_thought_that_is_not_shown_is_in_the_next_prompt_on_any_node(
    pair: list[MeshNode], sealing: int, stream: bool
) -> None:
    asked: dict[str, Any] = {
        "model": "thinks",
        "max_tokens": 64,
        "messages": HI,
        "thinking": OMITTED,
    }
    url = pair[sealing].node.url
    answer = await ask(port_of(url), "POST", "/v1/messages", {**asked, "stream": stream})
    assert answer.status == 200, answer.body
    assert b"question asks" not in answer.body
    with client(url) as one:
        if stream:
            with one.messages.stream(**asked) as events:
                thought = plain(events.get_final_message().to_dict())[0]
        else:
            thought = plain(one.messages.create(**asked).to_dict())[0]
    assert (thought["type"], thought["thinking"]) == ("thinking", "")
    signature = thought["signature"]
    carried = {"type": "thinking", "thinking": "", "signature": signature}
    shown = {"type": "thinking", "thinking": THOUGHT, "signature": ""}
    broken = {**carried, "signature": signature[:-8] + "AAAAAAA="}
    for node in pair:
        bare = await counted(node, None)
        assert await counted(node, carried) == await counted(node, shown) > bare
        assert await counted(node, broken) == bare
    assert json.dumps(THOUGHT)[1:-1] not in signature
