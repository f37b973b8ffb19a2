"""Log probabilities of relayed chats: those of a thought are not those of the content."""

import json
from pathlib import Path
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.engines.http.transport import HttpCall
from smg_node.pipeline.relay.filters.answer_filter import AnswerFilter
from smg_node.pipeline.relay.filters.thought_rows import ThoughtRows
from support.answers.chat_chunks import DONE, event
from support.engines.relay_bench import Told, relay_bench, streamed, told, worker

TOKENS = ["<think>", "Why", " not", "?", "</think>", "\n\n", "So", " it is", ".", "<|end|>"]


def rows(*tokens: str) -> list[dict[str, Any]]:
    return [{"token": token, "logprob": -1.0} for token in tokens]


def names(told: Any, name: str) -> list[str]:
    return [row["token"] for row in told.get(name, ())]


def whole(**message: Any) -> Told:
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "logprobs": {"content": rows(*TOKENS)},
        "finish_reason": "stop",
    }
    return told({"model": "m", "choices": [choice]})


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("content", ["\n\nSo it is.", "So it is."])
async def test_a_whole_answer_has_two_lists(tmp_path: Path, field: str, content: str) -> None:
    one = worker(lambda call: whole(content=content, **{field: "Why not?"}))
    async with relay_bench(tmp_path, w=one) as b:
        _, body = await b.answer(logprobs=True)
        shown = json.loads(body)["choices"][0]["logprobs"]
        assert names(shown, "reasoning_content") == ["Why", " not", "?"]
        before = ["\n\n"] if content.startswith("\n") else []
        assert names(shown, "content") == [*before, "So", " it is", "."]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "So it is."},
        {"content": "something else", "reasoning_content": "Why not?"},
        {"content": "So it is.", "reasoning_content": "something else"},
    ],
)
async def test_a_list_that_tells_nothing_stays(tmp_path: Path, message: dict[str, Any]) -> None:
    async with relay_bench(tmp_path, w=worker(lambda call: whole(**message))) as b:
        _, body = await b.answer(logprobs=True)
        shown = json.loads(body)["choices"][0]["logprobs"]
        assert shown == {"content": rows(*TOKENS)}


def piece(token: str, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": {"content": rows(token)}}
    return event({"choices": [{**choice, "finish_reason": None}]})


def stream(call: HttpCall) -> Told:
    end = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    thought = [piece(token, reasoning_content=token) for token in ("Why", "?")]
    return streamed(*thought, piece("So", content="So"), piece(".", content="."), end, DONE)


@pytest.mark.parametrize("stop", [None, "xyz"])
async def test_a_stream_has_two_lists(tmp_path: Path, stop: str | None) -> None:
    async with relay_bench(tmp_path, w=worker(stream)) as b:
        _, body = await b.answer(logprobs=True, stream=True, stop=stop)
        chunks = [json.loads(one[6:]) for one in body.split(b"\n\n")[:-2]]
        told = [chunk["choices"][0].get("logprobs") or {} for chunk in chunks]
        assert [name for one in told for name in names(one, "reasoning_content")] == ["Why", "?"]
        assert [name for one in told for name in names(one, "content")] == ["So", "."]


async def test_a_list_of_its_own_passes_byte_for_byte(tmp_path: Path) -> None:
    choice = {"index": 0, "message": {"content": "So", "reasoning": "Why"}, "finish_reason": "stop"}
    lists = {"content": rows("So"), "reasoning_content": rows("Why")}
    answer = told({"choices": [{**choice, "logprobs": lists}]})
    async with relay_bench(tmp_path, w=worker(lambda call: answer)) as b:
        _, body = await b.answer(logprobs=True)
        assert body == answer.pieces[0]


@pytest.mark.parametrize(("asked", "passes"), [({}, True), ({"stop": "z"}, False)])
async def test_a_body_too_large_to_be_read_passes_unless_it_must_be_cut(
    tmp_path: Path, asked: dict[str, Any], passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnswerFilter, "whole_max_bytes", 100)
    monkeypatch.setattr(ThoughtRows, "whole_max_bytes", 100)
    answer = whole(content="So it is.", reasoning_content="Why not?")
    async with relay_bench(tmp_path, w=worker(lambda call: answer, "qwen3-8b")) as b:
        if passes:
            head, body = await b.answer(model="qwen3-8b", logprobs=True, **asked)
            assert (head.whole, body) == (False, answer.pieces[0])
        else:
            with pytest.raises(SmgError, match="more than 100 bytes"):
                await b.answer(model="qwen3-8b", **asked)
