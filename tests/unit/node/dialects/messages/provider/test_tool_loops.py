"""Loops of calls with a vendor that refuses a lost or changed thought: through our Messages and back, round by round."""

from typing import Any

import pytest

from smg_node.core.generation.events import Begin, Event, Finish
from smg_node.dialects.messages.provider.dialect import PROVIDER
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.provider_dialect import WriterOptions
from support.answers.messages_answers import presenter, streamed
from support.answers.stated_answers import OMITTED, READER, Somebody, content, put_together
from support.providers.stand_ins import Desk

CLAUDE = WriterOptions("claude-sonnet-5", "anthropic")
BEGIN = Begin("0123456789abcdef" * 2, "ours", 5, 30)
TOOL = {"name": "f", "input_schema": {"type": "object", "properties": {}}}
KINDS = ("thinking", "redacted_thinking")


def body(messages: list[dict[str, Any]], thinking: dict[str, Any]) -> dict[str, Any]:
    raw = {
        "model": "m",
        "max_tokens": 4_000,
        "messages": messages,
        "tools": [TOOL],
        "thinking": thinking,
    }
    return PROVIDER.write(READER.read(raw, Somebody()).request, CLAUDE).fields


def asked(desk: Desk, fields: dict[str, Any]) -> list[Event]:
    reply = desk.ask("/v1/messages", fields)
    assert (reply.status, reply.body) == (200, b"")
    listener, out = PROVIDER.listen(BEGIN, prompt_tokens=7), list[Event]()
    for frame in reply.frames or ():
        listener.feed(frame.content, out)
    listener.end(out)
    return out


@pytest.mark.parametrize("wish", ["call f rounds=3", "call f rounds=3 redact"])
@pytest.mark.parametrize("view", [MessagesView("m"), OMITTED])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "thinking", [{"type": "adaptive"}, {"type": "enabled", "budget_tokens": 2_000}]
)
def test_thoughts_go_back_as_they_came_in_every_round(
    wish: str, view: MessagesView, whole: bool, thinking: dict[str, Any]
) -> None:
    desk = Desk("anthropic", strict=True)
    messages: list[dict[str, Any]] = [{"role": "user", "content": wish}]
    reasons = []
    for _ in range(4):
        events = asked(desk, body(messages, thinking))
        said = content(events, view) if whole else put_together(streamed(presenter(view), events))
        assert said[0]["type"] in KINDS
        messages.append({"role": "assistant", "content": said})
        reasons += [event.reason for event in events if isinstance(event, Finish)]
        calls = [one["id"] for one in said if one["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": one, "content": "1"} for one in calls]
        messages.append({"role": "user", "content": results})
    assert reasons == ["tool_calls", "tool_calls", "tool_calls", "stop"]


@pytest.mark.parametrize("change", [{"thinking": "other"}, {"signature": "c2ln"}])
def test_a_changed_thought_is_refused_there(change: dict[str, str]) -> None:
    desk = Desk("anthropic", strict=True)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "call f"}]
    said = content(asked(desk, body(messages, {"type": "adaptive"})))
    said[0] |= change
    result = {"type": "tool_result", "tool_use_id": said[1]["id"], "content": "1"}
    messages += [
        {"role": "assistant", "content": said},
        {"role": "user", "content": [result]},
    ]
    assert desk.ask("/v1/messages", body(messages, {"type": "adaptive"})).status == 400
