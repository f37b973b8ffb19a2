"""Updates of a session: what is merged, what degrades, what is refused, and what a refusal does to answers."""

from typing import Any

import pytest

from smg_node.core.generation.request import Thinking, ToolChoice
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.realtime.config.retention import AUTO, Retention
from smg_node.dialects.realtime.config.session_config import CONFIG_BYTES_MAX, merged
from smg_node.dialects.realtime.session_options import SessionOptions
from support.answers.realtime_client import MODEL, RealtimeClient, error_of, types

TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}


def update(client: RealtimeClient, **fields: Any) -> list[dict[str, Any]]:
    session = {"type": "realtime", **fields}
    return client.send("session.update", session=session, event_id="u")


def session_after(client: RealtimeClient, **fields: Any) -> dict[str, Any]:
    told = update(client, **fields)
    assert types(told) == ["session.updated"], told
    session: dict[str, Any] = told[0]["session"]
    return session


# ── Merging ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "change", "whole"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": 1}, {"a": ""}, {"a": ""}),
        ({"a": [1]}, {"a": []}, {"a": []}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
        ({"a": {"type": "x", "b": 1}}, {"a": {"type": "y"}}, {"a": {"type": "y"}}),
        ({"a": {"type": "x", "b": 1}}, {"a": {"c": 1}}, {"a": {"type": "x", "b": 1, "c": 1}}),
        ({"a": "x"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": "x"}, {"a": "x"}),
    ],
)
def test_a_change_is_merged_field_by_field(said: Any, change: Any, whole: Any) -> None:
    before = repr(said)
    assert merged(said, change) == whole
    assert repr(said) == before


def test_what_an_update_leaves_out_stays() -> None:
    client = RealtimeClient()
    first = session_after(
        client, instructions="Be brief.", tools=[TOOL], audio={"output": {"speed": 1.25}}
    )
    assert (first["instructions"], first["tools"]) == ("Be brief.", [TOOL])
    # Agents send a second update with nothing else.
    second = session_after(client, tracing="auto")
    assert second == {**first, "tracing": "auto"}
    assert session_after(client) == second
    third = session_after(client, instructions="", tools=[], tracing=None, audio=None)
    assert third == client.events[0]["session"]


def test_what_is_in_force_is_shown_whole() -> None:
    session = session_after(
        RealtimeClient(),
        reasoning={"effort": "low"},
        tool_choice={"type": "function", "name": "f"},
        tools=[{**TOOL, "description": None}],
        max_output_tokens=9,
        temperature=0.5,
        include=["item.input_audio_transcription.logprobs"],
        audio={
            "input": {
                "format": {"type": "audio/pcm", "rate": 16_000},
                "noise_reduction": {"type": "near_field"},
            },
            "output": {"format": {"type": "audio/pcmu"}},
        },
    )
    assert session["reasoning"] == {"effort": "low"}
    assert session["tools"] == [TOOL]
    assert (session["max_output_tokens"], session["temperature"]) == (9, 0.5)
    heard, spoken = session["audio"]["input"], session["audio"]["output"]
    assert heard["format"] == {"type": "audio/pcm", "rate": 24_000, "x_smg_rate": 16_000}
    assert heard["noise_reduction"] == {"type": "near_field"}
    assert (spoken["format"], spoken["voice"]) == ({"type": "audio/pcmu"}, "none")


def test_what_clients_ask_of_a_voice_degrades_where_there_is_none() -> None:
    session = session_after(
        RealtimeClient(),
        audio={
            "input": {
                "transcription": {"model": "gpt-4o-mini-transcribe"},
                "turn_detection": {"type": "semantic_vad", "eagerness": "auto"},
            },
            "output": {"voice": "marin"},
        },
    )
    assert session["audio"]["input"]["transcription"] is None
    assert session["audio"]["input"]["turn_detection"] is None
    assert session["audio"]["output"]["voice"] == "none"


def test_the_model_of_the_url_wins() -> None:
    client = RealtimeClient()
    session = session_after(client, model="gpt-realtime-2.1", id="sess_x", object="x", expires_at=5)
    assert session == client.events[0]["session"]
    assert client.ask().ask.model == MODEL


def test_an_answer_is_asked_for_as_the_session_says() -> None:
    client = RealtimeClient()
    update(
        client,
        instructions="Be brief.",
        tools=[TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
        max_output_tokens=9,
        reasoning={"effort": "high"},
    )
    start = client.ask()
    ask = start.ask
    assert (ask.instructions, ask.sampling.max_tokens, ask.stream) == ("Be brief.", 9, True)
    assert ask.choice == ToolChoice("required", parallel=False)
    assert ask.thinking == Thinking("high", where="session.reasoning.effort")
    assert not ask.store
    assert start.truncation == AUTO
    shown = client.start(start.response_id)[0]["response"]
    assert shown["max_output_tokens"] == 9
    update(client, max_output_tokens="inf", tool_choice=None)
    client.send("response.cancel")
    assert client.ask().ask.sampling.max_tokens is None


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("auto", AUTO),
        ("disabled", None),
        ({"type": "retention_ratio", "retention_ratio": 0.8}, Retention(0.8)),
        (
            {
                "type": "retention_ratio",
                "retention_ratio": 1,
                "token_limits": {"post_instructions": 200},
            },
            Retention(1.0, 200),
        ),
    ],
)
def test_how_a_conversation_is_cut_is_for_the_session_to_say(
    said: Any, rule: Retention | None
) -> None:
    client = RealtimeClient()
    assert session_after(client, truncation=said)["truncation"] == said
    assert client.ask().truncation == rule


# ── Refusals ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"type": None}, "missing_required_parameter", "type"),
        ({"type": "transcription"}, "invalid_value", "type"),
        ({"output_modalities": ["audio"]}, "invalid_value", "output_modalities"),
        ({"output_modalities": ["text", "audio"]}, "invalid_value", "output_modalities"),
        ({"output_modalities": ["smell"]}, "invalid_value", "output_modalities[0]"),
        ({"output_modalities": "text"}, "invalid_type", "output_modalities"),
        ({"prompt": {"id": "pmpt_1"}}, "unsupported_parameter", "prompt"),
        ({"instructions": 5}, "invalid_type", "instructions"),
        ({"tools": [{"type": "mcp"}]}, "unsupported_tool", "tools[0].type"),
        ({"tools": [TOOL, {"name": "g"}]}, "missing_required_parameter", "tools[1].type"),
        ({"tools": [TOOL, TOOL]}, "invalid_value", "tools[1].name"),
        ({"tools": [{**TOOL, "name": "a b"}]}, "invalid_value", "tools[0].name"),
        ({"tools": [{**TOOL, "parameters": 5}]}, "invalid_type", "tools[0].parameters"),
        ({"tools": [5]}, "invalid_type", "tools[0]"),
        ({"tools": {}}, "invalid_type", "tools"),
        ({"tools": [TOOL] * 513}, "invalid_value", "tools"),
        ({"tool_choice": "some"}, "invalid_value", "tool_choice"),
        ({"tool_choice": "required"}, "invalid_value", "tool_choice"),
        ({"tool_choice": 5}, "invalid_type", "tool_choice"),
        ({"tool_choice": {"type": "mcp"}}, "invalid_value", "tool_choice.type"),
        (
            {"tool_choice": {"type": "function", "name": "f"}},
            "invalid_value",
            "tool_choice.name",
        ),
        ({"parallel_tool_calls": 1}, "invalid_type", "parallel_tool_calls"),
        ({"max_output_tokens": 0}, "invalid_value", "max_output_tokens"),
        ({"max_output_tokens": "infinite"}, "invalid_value", "max_output_tokens"),
        ({"max_output_tokens": []}, "invalid_type", "max_output_tokens"),
        ({"reasoning": {"effort": "none"}}, "invalid_value", "reasoning.effort"),
        ({"temperature": 3}, "invalid_value", "temperature"),
        ({"truncation": "some"}, "invalid_value", "truncation"),
        ({"truncation": 5}, "invalid_type", "truncation"),
        ({"truncation": {}}, "missing_required_parameter", "truncation.type"),
        (
            {"truncation": {"type": "retention_ratio"}},
            "missing_required_parameter",
            "truncation.retention_ratio",
        ),
        (
            {"truncation": {"type": "retention_ratio", "retention_ratio": 1.5}},
            "invalid_value",
            "truncation.retention_ratio",
        ),
        ({"tracing": 5}, "invalid_type", "tracing"),
        ({"include": ["all"]}, "invalid_value", "include[0]"),
        ({"audio": []}, "invalid_type", "audio"),
        (
            {"audio": {"input": {"format": {"type": "audio/wav"}}}},
            "invalid_value",
            "audio.input.format.type",
        ),
        (
            {"audio": {"output": {"format": {"type": "audio/pcm", "rate": 16_000}}}},
            "invalid_value",
            "audio.output.format.rate",
        ),
        ({"audio": {"output": {"speed": 2}}}, "invalid_value", "audio.output.speed"),
        ({"audio": {"output": {"voice": 5}}}, "invalid_type", "audio.output.voice"),
        (
            {"audio": {"output": {"voice": {}}}},
            "missing_required_parameter",
            "audio.output.voice.id",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 2}}}},
            "invalid_value",
            "audio.input.turn_detection.threshold",
        ),
        (
            {"audio": {"input": {"turn_detection": {}}}},
            "missing_required_parameter",
            "audio.input.turn_detection.type",
        ),
        (
            {"audio": {"input": {"transcription": {"languages": [5]}}}},
            "invalid_type",
            "audio.input.transcription.languages[0]",
        ),
    ],
)
def test_what_means_something_else_is_refused_as_a_whole(
    fields: dict[str, Any], code: str, param: str
) -> None:
    client = RealtimeClient()
    told = update(client, **{"instructions": "Be brief.", **fields})
    assert error_of(told) == (code, f"session.{param}", "u")
    assert session_after(client) == client.events[0]["session"]


def test_unknown_fields_are_for_the_node_to_refuse() -> None:
    assert "surprise" not in session_after(RealtimeClient(), surprise=1)
    strict = RealtimeClient(SessionOptions(ReaderOptions(unknown_parameters="reject")))
    assert error_of(update(strict, surprise=1)) == ("unknown_parameter", "session.surprise", "u")


@pytest.mark.parametrize("session", [None, 5, []])
def test_an_update_without_a_session_is_refused(session: Any) -> None:
    client = RealtimeClient()
    code, param, _ = error_of(client.send("session.update", session=session))
    assert code in ("missing_required_parameter", "invalid_type")
    assert param == "session"
    assert error_of(client.send("response.create"))[0] == "session_update_refused"
    session_after(client)
    client.ask()


def test_no_answer_is_given_before_what_was_refused_is_made_good() -> None:
    client = RealtimeClient()
    update(client, output_modalities=["audio"], instructions="Be brief.", tracing="auto")
    told = client.send("response.create", event_id="r")
    assert error_of(told) == ("session_update_refused", None, "r")
    beside = client.send("response.create", response={"conversation": "none", "input": []})
    assert error_of(beside)[0] == "session_update_refused"
    session_after(client, instructions="Be brief.")
    told = client.send("response.create")
    assert error_of(told)[0] == "session_update_refused"
    message = told[0]["error"]["message"]
    assert "'output_modalities' was refused (session.output_modalities: this model" in message
    assert "instructions" not in message
    session_after(client, output_modalities=["text"])
    assert client.ask().ask.instructions == "Be brief."


def test_a_session_does_not_grow_without_end() -> None:
    client = RealtimeClient()
    share = "x" * (CONFIG_BYTES_MAX // 4)
    told = [update(client, tracing={"metadata": {str(n): share}}) for n in range(4)]
    assert error_of(told[3]) == ("invalid_value", "session", "u")
    assert len(told[2][0]["session"]["tracing"]["metadata"]) == 3


# ── Of one answer ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"output_modalities": ["audio"]}, "invalid_value", "output_modalities"),
        ({"tools": [{"type": "mcp"}]}, "unsupported_tool", "tools[0].type"),
        ({"prompt": {"id": "pmpt_1"}}, "unsupported_parameter", "prompt"),
        ({"conversation": "conv_1"}, "invalid_value", "conversation"),
        ({"metadata": {"a": 5}}, "invalid_type", "metadata.a"),
        ({"metadata": {str(n): "" for n in range(17)}}, "invalid_value", "metadata"),
        ({"audio": {"output": {"speed": "fast"}}}, "invalid_type", "audio.output.speed"),
    ],
)
def test_what_is_wrong_with_an_answer_is_named(
    fields: dict[str, Any], code: str, param: str
) -> None:
    client = RealtimeClient()
    told = client.send("response.create", response=fields, event_id="r")
    assert error_of(told) == (code, f"response.{param}", "r")
    assert client.session.running == ()
    client.ask(response=None)


def test_null_asks_for_nothing_else_in_an_answer() -> None:
    client = RealtimeClient()
    update(client, instructions="Be brief.")
    start = client.ask(response={"instructions": None, "tools": None, "conversation": None})
    assert start.ask.instructions == "Be brief."


# ── How much stays ───────────────────────────────────────────────────────────


def test_a_ratio_leaves_out_more_than_must_go() -> None:
    rule = Retention(0.8, 200)
    assert rule.prompt_max(1_000, instructions=50) == 250
    assert rule.prompt_kept(1_000, instructions=50) == 210
    assert rule.prompt_max(100, instructions=50) == 100
    assert rule.prompt_kept(100, instructions=50) == 90
    assert AUTO.prompt_max(100, instructions=50) == AUTO.prompt_kept(100, instructions=50) == 100
    # Instructions that leave no room for a conversation are for the budget to refuse.
    assert rule.prompt_kept(40, instructions=50) == 40
