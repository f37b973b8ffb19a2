"""A generation told as a response: every event what the SDK expects, and in order."""

import json
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    BlockEnd,
    BlockStart,
    Delta,
    Event,
    Fail,
    FinishReason,
    PromptEcho,
    TokenLogprob,
    TopLogprob,
    Usage,
)
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import DONE, frame
from smg_node.dialects.responses.request.output_parameters import LOGPROBS
from support.answers.generations import BEGIN, BROKEN, call, text, thought, types, whole
from support.answers.responses import (
    ask_of,
    checked,
    decoded,
    teller_of,
    told_whole,
)

CUSTOM = [{"type": "custom", "name": "free"}]

# ── In order ─────────────────────────────────────────────────────────────────

MESSAGE = [
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
]
THOUGHT = [name.replace("output_text", "reasoning_text") for name in MESSAGE]
CALL = [
    "output_item.added",
    "function_call_arguments.delta",
    "function_call_arguments.done",
    "output_item.done",
]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (whole(), []),
        (whole(text("Hi")), MESSAGE),
        (whole(text()), [name for name in MESSAGE if not name.endswith("delta")]),
        (whole(thought("hm"), text("Hi", block=1)), THOUGHT + MESSAGE),
        (whole(text("a"), call("{}", block=1)), MESSAGE + CALL),
        (whole(call("{}"), call(block=1, call_id="call_b")), CALL + CALL),
        (whole(thought("a"), text("b", block=1), thought("c", block=2)), THOUGHT + MESSAGE + THOUGHT),
    ],
)  # fmt: skip
def test_every_block_is_an_item_with_its_events(events: Any, expected: list[str]) -> None:
    told = told_whole(events)
    assert types(told) == ["created", "in_progress", *expected, "completed"]
    response = checked(told)
    assert response.status == "completed"
    assert [item.type for item in response.output] == [
        {"text": "message", "reasoning": "reasoning", "call": "function_call"}[event.kind]
        for event in events
        if isinstance(event, BlockStart)
    ]


def test_a_response_that_waits_is_created_then_queued() -> None:
    teller = teller_of()
    told = teller.queue()
    assert [row["response"]["status"] for row in decoded(told)] == ["queued", "queued"]
    told += teller.begin()
    assert types(told) == ["created", "queued", "in_progress"]
    again = teller_of().begin(queued=True)
    assert again == told
    checked([*told, *teller.close(FinalStatus.cancelled())])


@pytest.mark.parametrize(
    ("reason", "status", "details"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_how_the_generation_ended_is_how_the_last_item_and_the_response_ended(
    reason: FinishReason, status: str, details: str | None
) -> None:
    told = told_whole(whole(thought("hm"), text("Hi", block=1), reason=reason))
    response = checked(told)
    assert response.status == status
    assert [getattr(item, "status", None) for item in response.output] == ["completed", status]
    assert (response.incomplete_details and response.incomplete_details.reason) == details
    assert told[-1].type == f"response.{status}"
    assert (response.completed_at is not None) == (status == "completed")


def test_a_failure_says_who_is_wrong_in_the_sdks_words() -> None:
    for kind, code, message in (
        (ErrorKind.UPSTREAM_FAILED, "server_error", "it broke"),
        (ErrorKind.RATE_LIMITED, "rate_limit_exceeded", "it broke"),
        (ErrorKind.INVALID_REQUEST, "invalid_prompt", "it broke"),
        (ErrorKind.INTERNAL, "server_error", "The server had an error"),
    ):
        told = told_whole([BEGIN, *text("Hi"), Fail(SmgError(kind, "it broke"))])
        response = checked(told)
        assert (response.status, told[-1].type) == ("failed", "response.failed")
        assert response.error is not None
        assert response.error.code == code
        assert response.error.message.startswith(message)
        assert response.usage is None


def test_a_cancelled_response_is_incomplete_by_event_and_cancelled_by_status() -> None:
    teller = teller_of()
    told = [*teller.begin(), *teller.tell([BEGIN, *text("Hi")[:-1]])]
    assert teller.outcome is None
    told += teller.close(FinalStatus.cancelled().at(9))
    response = checked(told)
    assert told[-1].type == "response.incomplete"
    assert (response.status, response.incomplete_details) == ("cancelled", None)
    assert [doc.status for doc in teller.output()] == ["incomplete"]


def test_an_end_that_could_not_be_kept_is_another_end() -> None:
    teller = teller_of()
    told = [*teller.begin(), *teller.tell(whole(text("Hi")))]
    assert teller.outcome is not None
    *rest, last = teller.close(teller.outcome.at(9))
    other = teller.instead(FinalStatus.failed(BROKEN).at(9))
    assert (last.type, other.type) == ("response.completed", "response.failed")
    response = checked([*told, *rest, other])
    assert (response.status, response.completed_at) == ("failed", None)
    assert json.loads(teller.response()) == json.loads(other.data)["response"]


# ── Blocks of every kind ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("deltas", "reason", "arguments", "told_deltas"),
    [
        (('{"x":', "1}"), "tool_calls", '{"x":1}', ['{"x":', "1}"]),
        ((), "tool_calls", "{}", ["{}"]),
        (("", ""), "tool_calls", "{}", ["{}"]),
        (('{"x', ""), "length", '{"x', ['{"x']),
        ((), "length", "", [""]),
    ],
)
def test_a_call_has_a_delta_and_arguments(
    deltas: Any, reason: FinishReason, arguments: str, told_deltas: list[str]
) -> None:
    told = told_whole(whole(call(*deltas), reason=reason))
    response = checked(told)
    (item,) = response.output
    assert item.type == "function_call"
    assert (item.arguments, item.name, item.call_id) == (arguments, "f", "call_a")
    assert [row["delta"] for row in decoded(told) if "delta" in row] == told_deltas


def test_a_call_without_an_id_gets_one() -> None:
    (item,) = checked(told_whole(whole(call("{}", call_id="")))).output
    assert item.type == "function_call"
    assert item.call_id.startswith("call_")
    assert len(item.call_id) == 29


@pytest.mark.parametrize(
    ("deltas", "shown"),
    [
        (('{"input":"a', '\\nb"}'), "a\nb"),
        (("free words",), "free words"),
        (('{"input":5}',), '{"input":5}'),
        ((), ""),
    ],
)
def test_the_call_of_a_custom_tool_shows_the_string_inside(deltas: Any, shown: str) -> None:
    told = told_whole(whole(call(*deltas, name="free")), ask_of(tools=CUSTOM))
    (item,) = checked(told).output
    assert item.type == "custom_tool_call"
    assert (item.input, item.name, item.call_id) == (shown, "free", "call_a")
    assert [row["delta"] for row in decoded(told) if "delta" in row] == [shown]


SPACE = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers.",
    "tools": [{"type": "function", "name": "lookup"}, {"type": "custom", "name": "query"}],
}


def test_a_call_of_a_namespace_says_it_by_its_two_names() -> None:
    ask = ask_of(tools=[SPACE])
    calls = [
        call("{}", name="crm__lookup"),
        call('{"input":"x"}', block=1, name="crm__query", call_id="call_b"),
        call("{}", block=2, name="lookup", call_id="call_c"),
    ]
    told = told_whole(whole(*calls, reason="tool_calls"), ask)
    lookup, query, plain = checked(told).output
    assert lookup.type == "function_call"
    assert (lookup.namespace, lookup.name, lookup.call_id) == ("crm", "lookup", "call_a")
    assert query.type == "custom_tool_call"
    assert (query.namespace, query.name, query.input) == ("crm", "query", "x")
    assert plain.type == "function_call"
    assert (plain.namespace, plain.name) == (None, "lookup")
    added = [row["item"] for row in decoded(told) if row["type"].endswith("item.added")]
    assert [item.get("namespace") for item in added] == ["crm", "crm", None]


def test_a_thought_is_sealed_where_that_is_wanted() -> None:
    told = told_whole(whole(thought("h", "m")), seal=lambda plain: f"<{plain}>")
    (item,) = checked(told).output
    assert item.type == "reasoning"
    assert item.encrypted_content == "<hm>"
    added = next(row for row in decoded(told) if row["type"].endswith("item.added"))
    assert "encrypted_content" not in added["item"]


def test_thoughts_can_have_the_names_of_the_open_schema() -> None:
    told = told_whole(whole(thought("h", "m")), reasoning_events="open")
    assert types(told)[4:7] == ["reasoning.delta", "reasoning.delta", "reasoning.done"]


def token(spelled: str) -> TokenLogprob:
    return TokenLogprob(1, spelled, spelled.encode(), -0.5, (TopLogprob(2, "z", b"z", -1.5),))


def test_log_probabilities_go_with_the_text_and_stay_with_the_item() -> None:
    events: list[Event] = [
        BlockStart(0, 0, "text"),
        Delta(0, 0, "a", 1, (token("a"),)),
        Delta(0, 0, "", 1, (token("b"),)),
        Delta(0, 0, "", 1),
        Delta(0, 0, "bc", 1, (token("c"),)),
        BlockEnd(0, 0, "text", "abc"),
    ]
    told = told_whole(whole(events), ask_of(include=[LOGPROBS], top_logprobs=1))
    (item,) = checked(told).output
    assert item.type == "message"
    (part,) = item.content
    assert part.type == "output_text"
    assert part.logprobs is not None
    assert [row.token for row in part.logprobs] == ["a", "b", "c"]
    assert part.logprobs[0].top_logprobs[0].logprob == -1.5
    deltas = [row for row in decoded(told) if "delta" in row]
    assert [(row["delta"], len(row["logprobs"])) for row in deltas] == [
        ("a", 1), ("", 1), ("bc", 1),
    ]  # fmt: skip


def test_rounds_of_one_response_add_up() -> None:
    teller = teller_of()
    told = teller.begin()
    told += teller.tell(whole(call("{}"), reason="tool_calls"))
    assert teller.outcome == FinalStatus.completed()
    told += teller.tell([BEGIN])
    assert teller.outcome is None
    told += teller.tell(whole(text("Hi"))[1:])
    assert teller.usage == Usage(6, 4, 2, 2)
    told += teller.close(FinalStatus.completed().at(9))
    response = checked(told)
    assert [item.type for item in response.output] == ["function_call", "message"]
    assert response.usage is not None
    assert response.usage.total_tokens == 10


# ── The whole ────────────────────────────────────────────────────────────────


def test_how_events_are_batched_changes_nothing() -> None:
    events = whole(thought("a", "b"), text("c", block=1), call("{}", block=2))
    one, all_at_once = teller_of(), teller_of()
    singly = [told for event in events for told in one.tell([event])] if one.begin() else []
    assert all_at_once.begin()
    assert all_at_once.tell(events) == singly


def test_an_echo_of_the_prompt_is_not_told() -> None:
    teller = teller_of()
    teller.begin()
    assert teller.tell([BEGIN, PromptEcho(0, "x", (1,))]) == []


def test_nothing_follows_the_end() -> None:
    teller = teller_of()
    with pytest.raises(AssertionError):
        teller.close(FinalStatus.completed())
    teller.begin()
    teller.close(FinalStatus.completed())
    with pytest.raises(AssertionError):
        teller.close(FinalStatus.completed())
    with pytest.raises(AssertionError):
        teller.tell([BEGIN])


def test_a_frame_names_its_event() -> None:
    told = told_whole(whole(text("a\u2028b")))
    for one in told:
        head, body, *rest = frame(one).decode().split("\n")
        assert (head, rest) == (f"event: {one.type}", ["", ""])
        assert body.removeprefix("data: ").encode() == one.data
        assert len(body.splitlines()) == 1
    assert DONE == b"data: [DONE]\n\n"
