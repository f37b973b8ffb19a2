"""Thinking fields of a vendor's Messages: efforts and budgets, and where nobody may think."""

from typing import Any

import pytest

from smg_node.core.generation.request import (
    GenerateRequest,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
    Turn,
    TurnBlock,
)
from smg_node.dialects.provider_dialect import WriterOptions
from support.providers.written_messages import (
    OPTIONS,
    SIGNED,
    USER,
    asked,
    calls,
    written,
)

TOOL = Tool("f", "Looks.", {"properties": {"a": {"type": "string"}}}, strict=True)

BUDGETS = WriterOptions("m", "anthropic", 8_000, frozenset({"thinking_by_budget"}))
UNKNOWN = WriterOptions("m", "anthropic")
ADAPTIVE = WriterOptions("m", "anthropic", 8_000, frozenset({"thinking_adaptive_only"}))


@pytest.mark.parametrize(
    ("options", "thinking", "most", "said", "effort", "room", "ignored"),
    [
        (OPTIONS, Thinking(), 10, None, None, 10, ()),
        (OPTIONS, Thinking("none"), 10, {"type": "disabled"}, None, 10, ()),
        (OPTIONS, Thinking("high", on=False), 10, {"type": "disabled"}, "high", 10, ()),
        (OPTIONS, Thinking("minimal"), 10, {"type": "adaptive"}, "low", 10, ()),
        (OPTIONS, Thinking("max"), 10, {"type": "adaptive"}, "max", 10, ()),
        (OPTIONS, Thinking(adaptive=True), 10, {"type": "adaptive"}, None, 10, ()),
        (OPTIONS, Thinking(on=True), 10, {"type": "adaptive"}, None, 10, ()),
        (OPTIONS, Thinking(budget=2_000), 4_000, ("enabled", 2_000), None, 4_000, ()),
        (OPTIONS, Thinking(budget=9_000), 4_000, ("enabled", 3_999), None, 4_000, ()),
        (OPTIONS, Thinking(budget=9_000), None, ("enabled", 4_000), None, 8_000, ()),
        (UNKNOWN, Thinking(budget=9_000), None, ("enabled", 9_000), None, 13_096, ()),
        (OPTIONS, Thinking(budget=5), 4_000, ("enabled", 1_024), None, 4_000, ()),
        (OPTIONS, Thinking(budget=2_000), 1_024, None, None, 1_024, ("reasoning_effort",)),
        (OPTIONS, Thinking(number=0.5), 10, None, None, 10, ("reasoning_effort",)),
        (BUDGETS, Thinking("low"), 9_000, ("enabled", 2_048), None, 9_000, ()),
        (BUDGETS, Thinking(on=True), None, ("enabled", 4_000), None, 8_000, ()),
        (ADAPTIVE, Thinking(budget=2_000), 10, {"type": "adaptive"}, None, 10, ("reasoning_effort",)),
    ],
)  # fmt: skip
def test_how_much_to_think(
    options: WriterOptions,
    thinking: Thinking,
    most: int | None,
    said: Any,
    effort: str | None,
    room: int,
    ignored: tuple[str, ...],
) -> None:
    fields, left = written(asked(thinking=thinking, sampling=Sampling(max_tokens=most)), options)
    if isinstance(said, tuple):
        said = {"type": said[0], "budget_tokens": said[1]}
    assert fields.get("thinking") == said
    assert fields.get("output_config", {}).get("effort") == effort
    assert fields["max_tokens"] == room
    assert left == ignored


@pytest.mark.parametrize(
    "request_",
    [
        asked(tools=(TOOL,), choice=ToolChoice("required"), thinking=Thinking("high")),
        asked(
            USER,
            Turn("assistant", "So"),
            continue_final_message=True,
            thinking=Thinking("high"),
        ),
        asked(
            USER,
            calls(("a", "f")),
            Turn("tool", "1", answers_call="a"),
            thinking=Thinking(budget=2_000),
        ),
        asked(
            USER,
            calls(("a", "f")),
            Turn("tool", "1", answers_call="a"),
            Turn("user", "Go on"),
            thinking=Thinking(budget=2_000),
        ),
    ],
)
def test_who_may_not_think_is_not_asked_to(request_: GenerateRequest) -> None:
    fields, ignored = written(request_)
    assert "thinking" not in fields
    assert ignored == ("reasoning_effort",)


def test_a_loop_of_calls_that_began_with_a_signed_thought_goes_on_with_a_budget() -> None:
    signed = TurnBlock("reasoning", "x", opaque=(SIGNED,))
    turn = Turn("assistant", None, blocks=(signed, TurnBlock("call", "{}", "f", "a")))
    result = Turn("tool", "1", answers_call="a")
    fields, _ = written(asked(USER, turn, result, thinking=Thinking(budget=2_000)))
    assert fields["thinking"] == {"type": "enabled", "budget_tokens": 2_000}
