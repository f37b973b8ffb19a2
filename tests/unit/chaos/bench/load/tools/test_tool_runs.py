"""Tool runs of the load generator: what is asked, and which answers count."""

import json
from typing import Any

import pytest

from smg_chaos.bench.load.answer_check import Judge
from smg_chaos.bench.load.answer_forms import WrongAnswerError
from smg_chaos.bench.load.job import Flow, Job, Prompt
from smg_chaos.bench.load.load_flows import judge_of
from smg_chaos.bench.load.requests import requests_of
from smg_chaos.bench.load.tools.tool_runs import RunJudge

JUDGE = RunJudge(text="I read it.", result_bytes=5)
CALL = {
    "type": "mcp_call",
    "status": "completed",
    "error": None,
    "output": "page!",
    "arguments": "{}",
}
MESSAGE = {"type": "message", "content": [{"type": "output_text", "text": "I read it."}]}


def flow() -> Flow:
    return Flow(
        name="runs",
        shape="open",
        connections=2,
        tokens=0,
        stream=True,
        prompt=Prompt(kind="tool run", first=7, sizes=(5,)),
        rate_per_s=1.0,
        text="I read it.",
        model="caller",
        api="responses",
    )


def no_corpus() -> Any:
    raise AssertionError("runs need no documents")


def stream(*output: dict[str, Any], kind: str = "response.completed", usage: Any = 9) -> bytes:
    response = {"output": list(output), "usage": {"input_tokens": usage}}
    events = [{"type": "response.created"}, {"type": kind, "response": response}]
    return b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in events) + (
        b"data: [DONE]\n\n"
    )


def test_a_request_names_the_server_and_is_never_made_twice() -> None:
    requests = requests_of(Job(host="h", port=1, model="m", flows=()), flow(), no_corpus)
    sent = [requests.next(lane) for lane in range(50)]
    assert len(set(sent)) == 50
    head, _, body = sent[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/responses HTTP/1.1\r\n")
    assert f"content-length: {len(body)}".encode() in head
    said = json.loads(body)
    assert (said["model"], said["stream"]) == ("caller", True)
    assert said["tools"] == [{"type": "mcp", "server_label": "bench", "require_approval": "never"}]
    assert said["input"].startswith("0000000007 ")


def test_runs_have_a_judge_of_their_own() -> None:
    assert isinstance(judge_of(flow()), RunJudge)
    plain = Flow(
        name="x", shape="closed", connections=1, tokens=1, stream=True, prompt=Prompt(kind="short")
    )
    assert isinstance(judge_of(plain), Judge)


def test_an_answer_with_one_run_and_the_text_counts() -> None:
    assert (
        JUDGE.prompt_tokens(stream({"type": "mcp_list_tools"}, CALL, MESSAGE), chunked=False) == 9
    )
    content = stream(CALL, MESSAGE)
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content)
    assert JUDGE.prompt_tokens(chunked, chunked=True) == 9


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (stream(MESSAGE), "0 runs"),
        (stream(CALL, CALL, MESSAGE), "2 runs"),
        (stream({**CALL, "output": "pag"}, MESSAGE), "3 bytes, not 5"),
        (stream({**CALL, "output": None}, MESSAGE), "AttributeError"),
        (stream({**CALL, "status": "failed", "error": {"code": 502}}, MESSAGE), "502"),
        (stream({**CALL, "status": "incomplete"}, MESSAGE), "the run failed"),
        (stream(CALL), "the text is ''"),
        (stream(CALL, MESSAGE, kind="response.incomplete"), "it ends with"),
        (stream(CALL, MESSAGE, usage=0), "usage"),
        (stream(CALL, MESSAGE, usage="9"), "usage"),
        (stream(CALL, MESSAGE).replace(b"data: [DONE]\n\n", b""), "DONE"),
        (b"data: [DONE]\n\n", "DONE"),
        (b"data: {\n\ndata: [DONE]\n\n", "DecodeError"),
        (b"data: []\n\ndata: [DONE]\n\n", "TypeError"),
        (b"", "DONE"),
    ],
)
def test_other_answers_are_wrong(content: bytes, why: str) -> None:
    with pytest.raises(WrongAnswerError, match=why):
        JUDGE.prompt_tokens(content, chunked=False)
