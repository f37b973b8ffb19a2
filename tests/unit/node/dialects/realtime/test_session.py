"""A session of text: what is said in which order, who is busy, what is refused and how it ends."""

import json
from typing import Any

import pytest

from smg_node.core.context_limit import prompt_too_long
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import BlockEnd, BlockStart, Delta, Event, Fail
from smg_node.dialects.realtime.effects import Cancel, Close, RateLimit, Start, Timer
from smg_node.dialects.realtime.session_options import SessionOptions
from support.answers.generations import BEGIN, BROKEN, call, text, thought, whole
from support.answers.realtime_client import MODEL, NOW_MS, RealtimeClient, error_of, types, user

# ── Opening ──────────────────────────────────────────────────────────────────


def test_the_session_and_its_conversation_are_told_first() -> None:
    client = RealtimeClient()
    assert types(client.events) == ["session.created", "conversation.created"]
    session = client.events[0]["session"]
    assert session["id"] == client.session.id
    assert (session["model"], session["output_modalities"]) == (MODEL, ["text"])
    assert session["expires_at"] == client.session.expires_s == NOW_MS // 1000 + 3_600
    assert client.events[1]["conversation"]["id"] == client.conversation_id
    assert client.effects[2:] == [Timer(NOW_MS + 900_000)]


# ── An answer ────────────────────────────────────────────────────────────────

TEXT = [
    "response.created", "response.output_item.added", "conversation.item.added",
    "response.content_part.added", "response.output_text.delta", "response.output_text.delta",
    "response.output_text.done", "response.content_part.done", "response.output_item.done",
    "conversation.item.done", "response.done",
]  # fmt: skip
CALL = [
    "response.created", "response.output_item.added", "conversation.item.added",
    "response.function_call_arguments.delta", "response.function_call_arguments.delta",
    "response.function_call_arguments.done", "response.output_item.done",
    "conversation.item.done", "response.done",
]  # fmt: skip


def test_a_text_is_told_in_the_order_of_the_api() -> None:
    client = RealtimeClient()
    question = client.say("hi")
    start = client.ask()
    assert start.ask.routing_key == client.session.id
    told = client.feed(start.response_id, whole(text("hel", "lo")))
    assert types(told) == TEXT
    added, done = told[2], told[9]
    assert added["previous_item_id"] == done["previous_item_id"] == question
    assert (added["item"]["status"], added["item"]["content"]) == ("in_progress", [])
    assert done["item"]["content"] == [{"type": "output_text", "text": "hello"}]
    response = told[-1]["response"]
    assert response["output"] == [done["item"]]
    assert (response["status"], response["status_details"]) == ("completed", None)
    assert response["conversation_id"] == client.conversation_id
    assert response["usage"]["total_tokens"] == 5
    assert response["usage"]["input_token_details"]["cached_tokens"] == 1
    assert response["usage"]["output_token_details"]["x_smg_reasoning_tokens"] == 1
    assert client.session.running == ()


def test_a_call_is_added_in_progress_and_has_its_name_when_it_is_done() -> None:
    client = RealtimeClient()
    client.say("hi")
    start = client.ask()
    told = client.feed(start.response_id, whole(call('{"a"', ":1}"), reason="tool_calls"))
    assert types(told) == CALL
    assert (told[1]["item"]["status"], told[1]["item"]["arguments"]) == ("in_progress", "")
    assert (told[5]["name"], told[5]["arguments"]) == ("f", '{"a":1}')
    assert told[6]["item"]["status"] == "completed"


def test_a_call_without_arguments_has_an_empty_object_in_one_delta() -> None:
    client = RealtimeClient()
    start = client.ask()
    told = client.feed(start.response_id, whole(call(), reason="tool_calls"))
    assert [one["delta"] for one in told if one["type"].endswith("arguments.delta")] == ["{}"]


def test_thoughts_are_not_shown_and_come_back_in_the_turn_that_they_belong_to() -> None:
    client = RealtimeClient()
    client.say("hi")
    start = client.ask()
    told = client.feed(
        start.response_id,
        whole(thought("secret"), call("{}", block=1, call_id="c1"), reason="tool_calls"),
    )
    assert b"secret" not in json.dumps(told).encode()
    client.send("conversation.item.create", item=output("c1", "42"))
    again = client.ask()
    assert [doc.type for doc in again.history] == [
        "message", "reasoning", "function_call", "function_call_output",
    ]  # fmt: skip
    assert b"secret" in again.history[1].document


def test_what_limits_leave_is_told_behind_the_beginning() -> None:
    client = RealtimeClient()
    start = client.ask()
    told = client.start(start.response_id, RateLimit("requests", 10, 9, 1.5))
    assert types(told) == ["response.created", "rate_limits.updated"]
    assert told[1]["rate_limits"][0] == {
        "name": "requests", "limit": 10, "remaining": 9, "reset_seconds": 1.5,
    }  # fmt: skip
    assert client.start(start.response_id) == []
    assert types(client.feed(start.response_id, whole(text("a"))))[0] != "response.created"


@pytest.mark.parametrize(
    ("reason", "status", "why"),
    [
        ("length", "incomplete", "max_output_tokens"),
        ("context_window", "incomplete", "max_output_tokens"),
        ("pause", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_an_answer_that_was_cut_says_why(reason: Any, status: str, why: str) -> None:
    client = RealtimeClient()
    start = client.ask()
    told = client.feed(start.response_id, whole(text("half"), reason=reason))
    response = told[-1]["response"]
    assert response["status"] == status
    assert response["status_details"] == {"type": status, "reason": why}
    # What paused was said to its end.
    item_status = "completed" if reason == "pause" else "incomplete"
    assert response["output"][0]["status"] == item_status


def test_what_fails_behind_its_beginning_is_a_response_that_failed() -> None:
    client = RealtimeClient()
    start = client.ask(event_id="e1")
    cut: list[Event] = [
        BEGIN,
        BlockStart(0, 0, "text"),
        Delta(0, 0, "ha", 1),
        BlockEnd(0, 0, "text", "ha"),
    ]
    told = client.feed(start.response_id, [*cut, Fail(BROKEN)])
    response = told[-1]["response"]
    assert response["status_details"]["error"] == {
        "type": "server_error", "code": "upstream_error", "message": "it broke",
    }  # fmt: skip
    assert response["output"][0]["status"] == "incomplete"
    assert client.ask().response_id != start.response_id


def test_what_fails_before_its_beginning_is_an_error_that_names_the_event() -> None:
    client = RealtimeClient()
    start = client.ask(event_id="e1")
    refused = SmgError(ErrorKind.RATE_LIMITED, "too many", code="rate_limit_exceeded")
    told = client.feed(start.response_id, [Fail(refused)])
    assert error_of(told) == ("rate_limit_exceeded", None, "e1")
    assert client.session.running == ()
    assert client.feed(start.response_id, whole(text("late"))) == []


def test_a_conversation_that_is_too_long_is_a_response_that_failed() -> None:
    client = RealtimeClient()
    start = client.ask()
    told = client.feed(start.response_id, [Fail(prompt_too_long(9, 5, "input"))])
    assert types(told) == ["response.created", "response.done"]
    error = told[1]["response"]["status_details"]["error"]
    assert error["code"] == "context_length_exceeded"


# ── Busy, and cancelled ──────────────────────────────────────────────────────


def test_only_one_answer_at_a_time_writes_to_the_conversation() -> None:
    client = RealtimeClient()
    start = client.ask()
    told = client.send("response.create", event_id="e2")
    code = "conversation_already_has_active_response"
    assert error_of(told) == (code, None, "e2")
    assert start.response_id in told[0]["error"]["message"]
    client.feed(start.response_id, whole(text("a")))
    assert client.ask().response_id != start.response_id


def test_a_cancel_right_behind_its_create_ends_the_response() -> None:
    client = RealtimeClient()
    start = client.ask()
    told = client.send("response.cancel")
    assert types(told) == ["response.created", "response.done"]
    details = {"type": "cancelled", "reason": "client_cancelled"}
    assert told[1]["response"]["status_details"] == details
    assert Cancel(start.response_id) in client.effects
    assert client.feed(start.response_id, whole(text("late"))) == []
    assert client.start(start.response_id) == []
    assert client.ask().response_id != start.response_id


def test_a_cancel_cuts_what_is_open_and_counts_what_was_said() -> None:
    client = RealtimeClient()
    client.say("hi")
    start = client.ask()
    client.feed(start.response_id, [BEGIN, BlockStart(0, 0, "text"), Delta(0, 0, "ha", 4)])
    told = client.send("response.cancel", response_id=start.response_id)
    assert types(told) == TEXT[6:]
    assert told[-2]["item"]["status"] == "incomplete"
    usage = told[-1]["response"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (3, 4)
    # What was said is part of the conversation.
    assert [doc.role for doc in client.ask().history] == ["user", "assistant"]


def test_a_call_that_was_cut_is_in_no_prompt() -> None:
    client = RealtimeClient()
    client.say("hi")
    start = client.ask()
    client.feed(start.response_id, [BEGIN, BlockStart(0, 0, "call", "f", "c1")])
    client.send("response.cancel")
    assert error_of(client.send("conversation.item.create", item=output("c1", "1"))) == (
        "invalid_value", "item.call_id", None,
    )  # fmt: skip
    assert [doc.type for doc in client.ask().history] == ["message"]


def test_a_cancel_without_an_answer_is_an_error() -> None:
    client = RealtimeClient()
    code = "response_cancel_not_active"
    assert error_of(client.send("response.cancel", event_id="e1")) == (code, None, "e1")
    told = client.send("response.cancel", response_id="resp_1")
    assert error_of(told) == (code, "response_id", None)


# ── Beside the conversation ──────────────────────────────────────────────────


def test_eight_answers_go_on_beside_the_one_of_the_conversation() -> None:
    client = RealtimeClient()
    client.say("hi")
    main = client.ask()
    beside = [ask_beside(client, metadata={"n": str(number)}) for number in range(8)]
    told = client.send("response.create", response={"conversation": "none"}, event_id="e9")
    assert error_of(told) == ("rate_limit_exceeded", None, "e9")
    for number, one in enumerate(beside):
        told = client.feed(one.response_id, whole(text(f"answer {number}")))
        assert not any(kind.startswith("conversation.") for kind in types(told))
        response = told[-1]["response"]
        assert (response["metadata"], response["conversation_id"]) == ({"n": str(number)}, None)
    assert len(client.order) == 1
    client.feed(main.response_id, whole(text("main")))
    assert len(client.order) == 2


def ask_beside(client: RealtimeClient, **fields: Any) -> Start:
    return client.ask(response={"conversation": "none", **fields})


def test_an_answer_beside_does_not_see_what_is_being_said() -> None:
    client = RealtimeClient()
    client.say("hi")
    main = client.ask()
    client.feed(main.response_id, [BEGIN, *text("half")[:2]])
    assert [doc.role for doc in ask_beside(client).history] == ["user"]


# ── The end ──────────────────────────────────────────────────────────────────


def test_a_session_that_is_too_old_ends_and_says_so() -> None:
    client = RealtimeClient(SessionOptions(idle_max_s=10_000))
    start = client.ask()
    told = client.take(client.session.time(NOW_MS + 3_600_000))
    assert error_of(told) == ("session_expired", None, None)
    why = "Your session hit the maximum duration of 60 minutes."
    assert client.effects[-2:] == [Cancel(start.response_id), Close(1001, why)]
    assert client.send("response.create") == []
    assert client.take(client.session.time(NOW_MS + 9_000_000)) == []


def test_a_session_without_events_is_idle_unless_it_answers() -> None:
    client = RealtimeClient()
    client.now_ms += 600_000
    start = client.ask()
    client.take(client.session.time(NOW_MS + 900_000))
    assert client.effects[-1] == Timer(NOW_MS + 1_800_000)
    client.now_ms = NOW_MS + 1_000_000
    client.feed(start.response_id, whole(text("a")))
    client.take(client.session.time(NOW_MS + 1_800_000))
    assert client.effects[-1] == Timer(NOW_MS + 1_900_000)
    told = client.take(client.session.time(NOW_MS + 1_900_000))
    assert error_of(told) == ("session_expired", None, None)


def test_a_node_that_leaves_lets_the_answers_end() -> None:
    client = RealtimeClient()
    start = client.ask()
    assert client.session.drain() == []
    told = client.send("response.create", response={"conversation": "none"}, event_id="e")
    assert error_of(told) == ("overloaded", None, "e")
    client.feed(start.response_id, whole(text("a")))
    assert client.effects[-1] == Close(1012, "this node is about to leave")


def test_too_many_events_for_too_long_end_the_session() -> None:
    client = RealtimeClient(SessionOptions(events_per_s=2, events_over_s=3))
    for second in range(2):
        client.now_ms = NOW_MS + 1_000 * second
        for _ in range(3):
            client.send("response.cancel")
    # A quiet second begins the count anew.
    client.now_ms += 2_000
    for second in range(3):
        client.now_ms += 1_000 * bool(second)
        assert not isinstance(client.effects[-1], Close)
        for _ in range(3):
            client.send("response.cancel")
    assert client.effects[-1] == Close(1008, "too many events")


def test_appended_sound_is_not_counted_and_answered_once_a_second() -> None:
    client = RealtimeClient(SessionOptions(events_per_s=1, events_over_s=1))
    told = [client.send("input_audio_buffer.append", audio="AAAA") for _ in range(50)]
    assert error_of(told[0]) == ("invalid_state", "type", None)
    assert not any(told[1:])
    client.now_ms += 1_000
    assert client.send("input_audio_buffer.append", audio="AAAA")


# ── Errors ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("frame", "code", "param", "event_id"),
    [
        (b"", "invalid_payload", None, None),
        (b"\xff", "invalid_payload", None, None),
        (b"[1]", "invalid_payload", None, None),
        (b'{"event_id":"e"}', "invalid_payload", "type", "e"),
        (b'{"event_id":"e","type":5}', "invalid_payload", "type", "e"),
        (b'{"event_id":"e","type":"a.b"}', "unknown_event", "type", "e"),
        (b'{"event_id":5,"type":"response.cancel"}', "invalid_type", "event_id", None),
    ],
)
def test_what_is_no_event_is_refused(
    frame: bytes, code: str, param: str | None, event_id: str | None
) -> None:
    client = RealtimeClient()
    assert error_of(client.send_raw(frame)) == (code, param, event_id)


def test_a_frame_that_is_not_text_is_refused() -> None:
    client = RealtimeClient()
    told = client.take(client.session.binary(now_ms=NOW_MS))
    assert error_of(told) == ("invalid_payload", None, None)


def test_a_client_names_its_events_by_at_most_512_characters() -> None:
    client = RealtimeClient()
    assert error_of(client.send("a", event_id="e" * 512))[2] == "e" * 512
    assert error_of(client.send("a", event_id="e" * 513)) == ("invalid_value", "event_id", None)


@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        ("input_audio_buffer.commit", {}, "input_audio_buffer_commit_empty"),
        ("output_audio_buffer.clear", {}, "invalid_state"),
        (
            "conversation.item.truncate",
            {"item_id": "i", "content_index": 0, "audio_end_ms": 5},
            "item_truncate_invalid_item_id",
        ),
        ("conversation.item.truncate", {"item_id": "i"}, "missing_required_parameter"),
    ],
)
def test_events_of_sound_are_answered_where_there_is_no_voice(
    kind: str, fields: dict[str, Any], code: str
) -> None:
    client = RealtimeClient()
    assert error_of(client.send(kind, event_id="e", **fields))[::2] == (code, "e")


def test_an_empty_buffer_can_be_cleared() -> None:
    assert types(RealtimeClient().send("input_audio_buffer.clear")) == [
        "input_audio_buffer.cleared"
    ]


def output(call_id: str, value: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def test_everything_goes_into_one_packet() -> None:
    client = RealtimeClient()
    client.send("session.update", session={"type": "realtime", "instructions": "be brief"})
    client.send("conversation.item.create", item=user("hi"))
    start = client.ask()
    assert start.ask.instructions == "be brief"
