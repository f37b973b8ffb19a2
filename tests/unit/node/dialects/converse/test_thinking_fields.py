"""Thinking at Bedrock: how much, in the words of each family of models."""

from typing import Any

import pytest

from smg_node.core.generation.request import Sampling, Thinking, ToolCall, ToolChoice, Turn
from smg_node.dialects.provider_dialect import WriterOptions
from support.providers.converse_bodies import CLAUDE, GPT, NOVA, QWEN, TOOL, USER, fields, written

DRAWN = Sampling(max_tokens=5, temperature=0.5, top_p=0.9, top_k=40, stop=("END",))


def on(**said: Any) -> dict[str, Any]:
    return {"thinking": said}


@pytest.mark.parametrize(
    ("wish", "own", "effort", "most"),
    [
        (Thinking(), None, None, None),
        (Thinking(effort="none"), on(type="disabled"), None, None),
        (Thinking(on=False, effort="high"), on(type="disabled"), None, None),
        (Thinking(effort="minimal"), on(type="adaptive"), "low", None),
        (Thinking(effort="max"), on(type="adaptive"), "max", None),
        (Thinking(on=True), on(type="adaptive"), None, None),
        (Thinking(budget=2_000), on(type="enabled", budget_tokens=2_000), None, 4_096),
        (Thinking(budget=9_000), on(type="enabled", budget_tokens=9_000), None, 13_096),
        (
            Thinking(budget=2_000, effort="low"),
            on(type="enabled", budget_tokens=2_000),
            "low",
            4_096,
        ),
    ],
)
def test_how_much_claude_is_to_think(
    wish: Thinking, own: Any, effort: str | None, most: int | None
) -> None:
    found = fields(options=CLAUDE, thinking=wish)
    assert found.get("additionalModelRequestFields") == own
    assert found.get("outputConfig", {}).get("effort") == effort
    assert found.get("inferenceConfig", {}).get("maxTokens") == most


@pytest.mark.parametrize(
    ("options", "wish", "told", "ignored"),
    [
        (GPT, Thinking(effort="xhigh"), {"reasoning_effort": "high"}, ()),
        (QWEN, Thinking(effort="low"), {"reasoning_config": "low"}, ()),
        (NOVA, Thinking(effort="low"), {"effort": "low"}, ()),
        (NOVA, Thinking(effort="none"), {}, ("reasoning_effort",)),
        (GPT, Thinking(budget=2_000, where="thinking"), {}, ("thinking",)),
        (GPT, Thinking(on=True, where="thinking"), {}, ("thinking",)),
    ],
)
def test_how_much_others_are_to_think(
    options: WriterOptions, wish: Thinking, told: Any, ignored: Any
) -> None:
    found = written(options=options, thinking=wish)
    own = found.fields.get("additionalModelRequestFields", {})
    assert {**own, **found.fields.get("outputConfig", {})} == told
    assert found.ignored == ignored


def test_who_thinks_is_not_told_how_to_draw() -> None:
    found = written(options=CLAUDE, sampling=DRAWN, thinking=Thinking(effort="low"))
    assert found.fields["inferenceConfig"] == {"maxTokens": 5, "stopSequences": ["END"]}
    assert found.fields["additionalModelRequestFields"] == on(type="adaptive")
    assert found.ignored == ("top_p", "temperature", "top_k")


@pytest.mark.parametrize(
    ("turns", "more"),
    [
        ((USER,), {"tools": (TOOL,), "choice": ToolChoice("required")}),
        ((USER, Turn("assistant", "So")), {"continue_final_message": True}),
        (
            (
                USER,
                Turn("assistant", None, calls=(ToolCall("a", "look_up", "{}"),)),
                Turn("tool", "x", answers_call="a"),
            ),
            {"tools": (TOOL,)},
        ),
        ((USER,), {"sampling": Sampling(max_tokens=1_000)}),
    ],
)
def test_where_claude_would_refuse_to_think_it_is_not_asked_to(turns: Any, more: Any) -> None:
    wish = Thinking(budget=2_000, where="thinking")
    found = written(*turns, options=CLAUDE, thinking=wish, **more)
    assert "additionalModelRequestFields" not in found.fields
    assert found.ignored == ("thinking",)


def test_quirks_of_older_and_newer_models() -> None:
    older = WriterOptions(CLAUDE.model, "anthropic", quirks=frozenset({"thinking_by_budget"}))
    found = fields(options=older, thinking=Thinking(effort="low"))
    assert found["additionalModelRequestFields"] == on(type="enabled", budget_tokens=2_048)
    assert "outputConfig" not in found
    newer = WriterOptions(CLAUDE.model, "anthropic", quirks=frozenset({"thinking_adaptive_only"}))
    told = written(options=newer, thinking=Thinking(budget=2_000, where="thinking"))
    assert told.fields.get("additionalModelRequestFields") is None
    told = written(options=newer, thinking=Thinking(budget=2_000, on=True, where="thinking"))
    assert told.fields["additionalModelRequestFields"] == on(type="adaptive")
    assert told.ignored == ("thinking",)
