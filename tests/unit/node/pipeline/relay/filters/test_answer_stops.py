"""Stop strings of clients whose answers come from HTTP workers: they count in answers, not in thoughts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from smg_node.core.generation.request import Sampling
from smg_node.engines.http.transport import HttpCall
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.pipeline.relay.filters.answer_stops import WithheldStops
from smg_node.pipeline.relay.filters.streamed_usage import StreamedUsage
from support.answers.chat_chunks import DONE, blocks, chunk, event, finish_of, usage_of, used
from support.engines.chat_relay_bench import bench
from support.engines.relay_bench import FakeTransport, Told, relay_bench, streamed, told, worker

THOUGHT = "Which number is it? "
ANSWER = "The number is 4."


def thinker(call: HttpCall, *, marks: bool = False) -> Told:
    """Answer as a server whose model thinks: stop strings are matched in all that it prints."""
    body = json.loads(call.body)
    shown = THOUGHT + ("</think>" if marks else "|") + ANSWER
    stop = body.get("stop") or ()
    cut = min((shown.find(one) for one in stop if one in shown), default=len(shown))
    thought, _, text = shown[:cut].partition("</think>" if marks else "|")
    if marks:
        closer = "</think>" if len(thought) == len(THOUGHT) and cut > len(THOUGHT) else ""
        thought, text = "", f"<think>{thought}{closer}{text}"
    if not body.get("stream"):
        message = {"role": "assistant", "content": text or None, "reasoning_content": thought}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 9}
        return told({"model": "m", "choices": [choice], "usage": usage})
    options = body.get("stream_options", {})
    pieces = [chunk(role="assistant", content="")]
    pieces += [chunk(reasoning_content=one) for one in thought]
    pieces += [chunk(content=one) for one in text]
    if options.get("continuous_usage_stats"):
        pieces = [_with_usage(piece, at) for at, piece in enumerate(pieces)]
    pieces.append(chunk("stop"))
    if options.get("include_usage"):
        pieces.append(used(5, len(pieces)))
    return streamed(*pieces, DONE)


def _with_usage(piece: bytes, at: int) -> bytes:
    usage = {"prompt_tokens": 5, "completion_tokens": at}
    return event({**json.loads(piece[6:]), "usage": usage})


def plain(call: HttpCall) -> Told:
    """Answer as a server whose model does not think, and that does not do what it is told of stops."""
    return streamed(chunk(role="assistant", content=""), chunk(content="Hi"), chunk("stop"), DONE)


def sent(one: FakeTransport) -> list[Any]:
    """Return the stop strings of each call, None where it had none."""
    return [json.loads(call.body).get("stop") for call in one.calls]


@pytest.mark.parametrize(("name", "first"), [("m", [["number"], None]), ("qwen3-8b", [None])])
async def test_a_response_is_not_ended_by_a_word_of_its_thought(
    tmp_path: Path, name: str, first: list[Any]
) -> None:
    one = worker(thinker, name)
    async with bench(tmp_path, w=one) as b:
        for _ in range(2):
            events = await b.events(model=name, sampling=Sampling(stop=("number",)))
            assert blocks(events) == [f"reasoning {THOUGHT}", "text The "]
            assert (finish_of(events).reason, finish_of(events).matched) == ("stop", "number")
            assert usage_of(events).prompt_tokens == 5
    assert sent(one) == [*first, None]


@pytest.mark.parametrize("word", ["none", "plain"])
async def test_an_operator_who_says_that_a_model_does_not_think_is_believed_until_it_does(
    tmp_path: Path, word: str
) -> None:
    one = worker(plain, "qwen3-8b")
    settings = {"qwen3-8b": ModelSettings(reasoning_parser=word)}
    async with bench(tmp_path, w=one, settings=settings) as b:
        events = await b.events(model="qwen3-8b", sampling=Sampling(stop=("number",)))
        assert blocks(events) == ["text Hi"]
    assert sent(one) == [["number"]]


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_relayed_chat_is_ended_in_its_answer(
    tmp_path: Path, marks: bool, stream: bool
) -> None:
    one = worker(lambda call: thinker(call, marks=marks))
    async with relay_bench(tmp_path, w=one) as b:
        for _ in range(2):
            head, body = await b.answer(stop="number", stream=stream)
            assert head.whole is not stream
            text, finishes = _read(body, stream=stream)
            assert text == (f"<think>{THOUGHT}</think>The " if marks else "The ")
            assert finishes == [("stop", "number")]
        assert [outcome.kind for outcome in b.outcomes] == ["ok", "ok"]
        assert b.idle()
    assert sent(one) == ["number", None, None]
    assert one.open == 0


async def test_a_model_that_does_not_think_is_told_its_stop_strings_and_its_bytes_pass(
    tmp_path: Path,
) -> None:
    one = worker(plain)
    async with relay_bench(tmp_path, w=one) as b:
        _, body = await b.answer(stop=["number"], stream=True)
        assert body == b"".join(
            piece for piece in plain(one.calls[0]).pieces if type(piece) is bytes
        )
    assert sent(one) == [["number"]]


async def test_an_answer_that_begins_with_a_stop_string_is_asked_for_twice_and_empty(
    tmp_path: Path,
) -> None:
    def says(call: HttpCall) -> Told:
        stopped = "stop" in json.loads(call.body)
        message = {"content": "" if stopped else "number 4"}
        return told({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    one = worker(says)
    async with relay_bench(tmp_path, w=one) as b:
        for _ in range(2):
            _, body = await b.answer(stop="number")
            [choice] = json.loads(body)["choices"]
            assert choice["message"]["content"] == ""
            assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "number")
    assert sent(one) == ["number", None, "number", None]


@pytest.mark.parametrize("stop", [None, [], 5, [5], [""]])
async def test_what_is_no_stop_string_is_left_to_the_worker(tmp_path: Path, stop: Any) -> None:
    one = worker(thinker)
    one.says = plain
    async with relay_bench(tmp_path, w=one) as b:
        await b.answer(stop=stop, stream=True)
    assert sent(one) == [stop]


@pytest.mark.parametrize(
    ("options", "last"),
    [
        (None, None),
        ({"include_usage": True}, {"prompt_tokens": 5, "completion_tokens": 27}),
    ],
)
async def test_the_usage_of_a_stream_that_ends_here_is_what_its_worker_said_last(
    tmp_path: Path, options: Any, last: Any
) -> None:
    one = worker(thinker, "qwen3-8b")
    async with relay_bench(tmp_path, w=one) as b:
        _, body = await b.answer(model="qwen3-8b", stop="num", stream=True, stream_options=options)
        chunks = _chunks(body)
        assert [each.get("usage") for each in chunks[:-1]] == [None] * (len(chunks) - 1)
        assert chunks[-1].get("usage") == last
        [outcome] = b.outcomes
        assert (outcome.prompt_tokens, outcome.completion_tokens) == (5, 27)


async def test_each_of_several_choices_ends_by_itself(tmp_path: Path) -> None:
    said = [
        chunk(index=0, reasoning_content="x"),
        chunk(index=1, content="a number"),
        chunk(index=0, content="no num"),
        chunk(index=1, content="more"),
        chunk("length", index=0, content="b"),
        chunk("stop", index=1),
        DONE,
    ]
    async with relay_bench(tmp_path, w=worker(lambda call: streamed(*said))) as b:
        _, body = await b.answer(stop="number", stream=True, n=2)
        texts = {0: "", 1: ""}
        finishes: dict[int, str] = {}
        for each in _chunks(body):
            for choice in each["choices"]:
                texts[choice["index"]] += choice["delta"].get("content", "")
                if choice["finish_reason"]:
                    finishes[choice["index"]] = choice["finish_reason"]
        assert texts == {0: "no numb", 1: "a "}
        assert finishes == {0: "length", 1: "stop"}


def _feed(stops: Sequence[str], said: Sequence[bytes], cut: int) -> list[Any]:
    one = WithheldStops(stops, keep=False, answers=1, usage=StreamedUsage({}))
    body, out = b"".join(said), b""
    for at in range(0, len(body), cut):
        out += one.feed(body[at : at + cut])
        if one.over:
            break
    return _chunks(out + (b"" if one.over else one.finish()))


@pytest.mark.parametrize("cut", [1, 2, 7, 64, 10_000])
@pytest.mark.parametrize(
    ("said", "text", "finish"),
    [
        (["a nu", "mb", "er"], "a ", "stop"),
        (["a nu", "mbles"], "a numbles", "length"),
        (["\n", "\nnumber"], "\n\n", "stop"),
        (["<thi", "nk>number</th", "ink>\n\n4 number"], "<think>number</think>\n\n4 ", "stop"),
        (["<thin"], "<thin", "length"),
        ([], "", "length"),
    ],
)
def test_stop_strings_are_found_at_any_cut(
    cut: int, said: list[str], text: str, finish: str
) -> None:
    pieces = [chunk(content=one) for one in said] + [chunk("length"), DONE]
    chunks = _feed(["number"], pieces, cut)
    shown = "".join(each["choices"][0]["delta"].get("content", "") for each in chunks)
    assert (shown, chunks[-1]["choices"][0]["finish_reason"]) == (text, finish)


@pytest.mark.parametrize("stop", ["\n\n", " "])
def test_white_space_behind_a_thought_is_layout(stop: str) -> None:
    said = [chunk(reasoning_content="x"), chunk(content="\n\n Yes."), chunk("stop"), DONE]
    chunks = _feed([stop], said, 10_000)
    shown = "".join(each["choices"][0]["delta"].get("content", "") for each in chunks)
    assert shown == "\n\n Yes."


def test_nothing_is_sent_for_text_that_is_held() -> None:
    said = [chunk(content=one) for one in ("a", "n", "u", "x")]
    chunks = _feed(["number"], [*said, chunk("stop"), DONE], 10_000)
    assert [each["choices"][0]["delta"].get("content") for each in chunks] == ["a", "nux", None]


def test_log_probabilities_pass_with_the_text_they_are_of() -> None:
    def row(token: str) -> bytes:
        rows = {"content": [{"token": token, "logprob": -1.0}]}
        choice = {"index": 0, "delta": {"content": token}, "logprobs": rows, "finish_reason": None}
        return event({"choices": [choice]})

    chunks = _feed(["number"], [row(one) for one in ("a", " n", "um", "b", " num", "ber")], 10_000)
    tokens = [
        each["token"]
        for one in chunks
        for each in ((one["choices"][0].get("logprobs") or {}).get("content") or ())
    ]
    assert tokens == ["a", " n", "um", "b"]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("name", ["include_stop_str_in_output", "no_stop_trim"])
async def test_a_stop_string_may_be_kept(tmp_path: Path, name: str) -> None:
    one = worker(thinker, "qwen3-8b")
    async with relay_bench(tmp_path, w=one) as b:
        more: dict[str, Any] = {"model": "qwen3-8b", "stop": "number", name: True}
        _, body = await b.answer(**more)
        assert _read(body, stream=False)[0] == "The number"


def _chunks(body: bytes) -> list[Any]:
    events = [one.removeprefix(b"data: ") for one in body.split(b"\n\n") if one.strip()]
    assert events.count(b"[DONE]") == 1
    assert events[-1] == b"[DONE]"
    return [json.loads(one) for one in events[:-1]]


def _read(body: bytes, *, stream: bool) -> tuple[str, list[tuple[str, str]]]:
    chunks = _chunks(body) if stream else [json.loads(body)]
    choices = [choice for one in chunks for choice in one["choices"]]
    place = "delta" if stream else "message"
    text = "".join(choice[place].get("content") or "" for choice in choices)
    return text, [
        (choice["finish_reason"], choice.get("stop_reason"))
        for choice in choices
        if choice["finish_reason"]
    ]
