import json
from typing import Any

import msgspec
import pytest

from smg_chaos.bench.load.corpus import Corpus, corpus_of
from smg_chaos.bench.load.job import Api, Flow, Job, Prompt
from smg_chaos.bench.load.requests import TURNS, requests_of

JOB = Job(host="127.0.0.1", port=81, model='a "model"', flows=())


def corpus() -> Corpus:
    return corpus_of([f'line {number} says "so"\n' for number in range(5000)])


def flow(kind: str, *, stream: bool = False, sizes: tuple[int, ...] = ()) -> Flow:
    prompt = Prompt(kind=kind, first=1000, sizes=sizes, said='He said "no".')  # type: ignore[arg-type]  # one of the parameters below
    return Flow(name="x", shape="closed", connections=1, tokens=7, stream=stream, prompt=prompt)


def read(request: bytes) -> dict[str, Any]:
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /v1/chat/completions HTTP/1.1"
    headers = dict(line.split(": ", 1) for line in lines[1:])
    assert int(headers["content-length"]) == len(body)
    value: dict[str, Any] = json.loads(body)
    return value


KINDS = {
    "short": (),
    "cycled": (3000, 4000),
    "tail": (3000,),
    "document": (2000,),
    "turns": (),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_request_is_what_an_openai_client_would_send(kind: str, *, stream: bool) -> None:
    requests = requests_of(JOB, flow(kind, stream=stream, sizes=KINDS[kind]), corpus)
    for _ in range(5):
        body = read(requests.next(0))
        assert body["model"] == 'a "model"'
        assert body["max_tokens"] == 7
        assert body.get("stream", False) is stream
        assert ("stream_options" in body) is stream
        assert {message["role"] for message in body["messages"]} >= {"system", "user"}


@pytest.mark.parametrize("kind", ["short", "tail", "document"])
def test_no_prompt_is_asked_twice(kind: str) -> None:
    requests = requests_of(JOB, flow(kind, sizes=KINDS[kind]), corpus)
    assert len({requests.next(lane % 3) for lane in range(500)}) == 500


def test_rounds_share_no_prompt_but_gateways_do() -> None:
    first = requests_of(JOB, flow("short"), corpus)
    second = requests_of(JOB, flow("short"), corpus)
    assert [first.next(0) for _ in range(9)] == [second.next(0) for _ in range(9)]


def test_cycled_prompts_come_again() -> None:
    requests = requests_of(JOB, flow("cycled", sizes=(3000, 4000)), corpus)
    asked = [requests.next(0) for _ in range(6)]
    assert len(set(asked)) == 2
    assert asked[:2] * 3 == asked


def test_tails_differ_behind_a_long_common_start() -> None:
    requests = requests_of(JOB, flow("tail", sizes=(3000,)), corpus)
    one, two = (read(requests.next(0))["messages"][1]["content"] for _ in range(2))
    assert one != two
    assert one[:2500] == two[:2500]


def test_documents_are_as_long_as_asked() -> None:
    requests = requests_of(JOB, flow("document", sizes=(2000,)), corpus)
    assert 1600 < len(read(requests.next(0))["messages"][1]["content"]) < 2300


def test_a_chat_grows_turn_by_turn_and_starts_anew_after_the_last() -> None:
    requests = requests_of(JOB, flow("turns"), corpus)
    chats = [read(requests.next(0))["messages"] for _ in range(TURNS + 1)]
    for turn, messages in enumerate(chats[:TURNS]):
        assert len(messages) == 2 + 2 * turn
        assert [m["role"] for m in messages] == ["system", *["user", "assistant"] * turn, "user"]
        assert chats[turn - 1] == messages[:-2] or turn == 0
    assert all(m["content"] == 'He said "no".' for m in chats[9] if m["role"] == "assistant")
    assert len(chats[TURNS]) == 2
    assert chats[TURNS][0] != chats[0][0]


def test_every_connection_has_a_chat_of_its_own() -> None:
    requests = requests_of(JOB, flow("turns"), corpus)
    firsts = [read(requests.next(lane))["messages"] for lane in (0, 1, 0)]
    assert firsts[0][0] != firsts[1][0]
    assert [len(one) for one in firsts] == [2, 2, 4]


def test_messages_have_their_own_path_and_form() -> None:
    asked = msgspec.structs.replace(flow("short", stream=True), api="messages")
    request = requests_of(JOB, asked, corpus).next(0)
    head, _, body = request.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/messages HTTP/1.1\r\n")
    assert b"\r\nanthropic-version: 2023-06-01\r\n" in head
    value = json.loads(body)
    assert value.pop("system").startswith("You are")
    [turn] = value.pop("messages")
    assert (turn["role"], turn["content"][:11]) == ("user", "0000001000 ")
    assert value == {"model": JOB.model, "max_tokens": 7, "stream": True}


@pytest.mark.parametrize(
    ("api", "system", "more"),
    [
        ("responses", "instructions", {"max_output_tokens": 7}),
        ("interactions", "system_instruction", {"generation_config": {"max_output_tokens": 7}}),
    ],
)
def test_apis_that_keep_their_answers_have_one_text_for_a_question(
    api: Api, system: str, more: dict[str, Any]
) -> None:
    asked = msgspec.structs.replace(flow("short", stream=True), api=api)
    head, _, body = requests_of(JOB, asked, corpus).next(0).partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/%b HTTP/1.1\r\n" % api.encode())
    value = json.loads(body)
    assert value.pop(system).startswith("You are")
    assert value.pop("input").startswith("0000001000 is my number.")
    assert value == {"model": JOB.model, "stream": True, **more}
