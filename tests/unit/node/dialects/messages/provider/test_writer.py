"""Writer of a vendor's Messages: bodies that the API takes, nothing lost silently, clear refusals."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    MediaPart,
    Sampling,
    TextPart,
    TextPrompt,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    Turn,
    TurnBlock,
)
from smg_node.dialects.messages.provider.conversation import NO_RESULT
from smg_node.dialects.messages.provider.dialect import PROVIDER
from smg_node.dialects.provider_dialect import WriterOptions
from support.providers.messages_wishes import PICTURE, wishes
from support.providers.strict_messages import refusal

OPTIONS = WriterOptions("claude-x", "anthropic", output_max=8_000)
USER = Turn("user", "Hi")
SIGNED = Opaque("anthropic", "signature", "c2lnbmVk+/==")


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def asked(*turns: Turn, sampling: Sampling | None = None, **prompt: Any) -> GenerateRequest:
    said = ChatPrompt(turns or (USER,), **prompt)
    return GenerateRequest("ours", (said,), sampling or Sampling(), True)


def written(
    request: GenerateRequest, options: WriterOptions = OPTIONS
) -> tuple[dict[str, Any], tuple[str, ...]]:
    found = PROVIDER.write(request, options)
    assert refusal(found.fields) == ""
    return found.fields, found.ignored


def messages(*turns: Turn, **prompt: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = written(asked(*turns, **prompt))[0]["messages"]
    return found


def refused(request: GenerateRequest, options: WriterOptions = OPTIONS) -> str | None:
    with pytest.raises(SmgError) as caught:
        PROVIDER.write(request, options)
    return caught.value.where


def test_a_plain_request_is_nothing_but_its_words() -> None:
    assert written(asked(USER))[0] == {
        "model": "claude-x",
        "max_tokens": 8_000,
        "messages": [{"role": "user", "content": [text("Hi")]}],
        "stream": True,
    }


# ── Turns ────────────────────────────────────────────────────────────────────


def test_neighbours_of_one_role_are_one_message_and_what_says_nothing_is_left_out() -> None:
    assert messages(
        Turn("user", "A"),
        Turn("user", (TextPart("B"), TextPart(" "))),
        Turn("assistant", ""),
        Turn("user", "\n"),
        Turn("assistant", "C"),
        Turn("assistant", "D"),
        Turn("user", "E"),
    ) == [
        {"role": "user", "content": [text("A"), text("B")]},
        {"role": "assistant", "content": [text("C"), text("D")]},
        {"role": "user", "content": [text("E")]},
    ]


def test_systems_come_first_unless_they_stay() -> None:
    turns = (Turn("system", "S"), Turn("developer", "D"), USER, Turn("system", "T"), USER)
    fields, _ = written(asked(*turns))
    assert fields["system"] == [text("S"), text("D"), text("T")]
    assert fields["messages"] == [{"role": "user", "content": [text("Hi"), text("Hi")]}]
    fields, _ = written(asked(*turns, systems_stay=True))
    assert fields["system"] == [text("S"), text("D")]
    assert fields["messages"] == [
        {"role": "user", "content": [text("Hi")]},
        {"role": "system", "content": [text("T")]},
        {"role": "user", "content": [text("Hi")]},
    ]
    first = WriterOptions("m", "anthropic", quirks=frozenset({"systems_first"}))
    assert len(written(asked(*turns, systems_stay=True), first)[0]["system"]) == 3


def test_a_system_prompt_alone_is_what_the_user_says() -> None:
    fields, _ = written(asked(Turn("system", "S")))
    assert "system" not in fields
    assert fields["messages"] == [{"role": "user", "content": [text("S")]}]
    assert refused(asked(Turn("user", " "))) == "messages"


def calls(*named: tuple[str, str]) -> Turn:
    return Turn("assistant", None, calls=tuple(ToolCall(one, name, "{}") for one, name in named))


def test_results_come_first_in_the_order_of_their_calls_and_a_lost_one_is_told() -> None:
    found = messages(
        USER,
        calls(("a", "f"), ("b", "f"), ("c", "f")),
        Turn("user", "Wait"),
        Turn("tool", "3", answers_call="c", extra={"is_error": True}),
        Turn("system", "S"),
        Turn("tool", "", answers_call="a"),
        Turn("user", "Go"),
        systems_stay=True,
    )
    assert found[2:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a"},
                {
                    "type": "tool_result",
                    "tool_use_id": "b",
                    "is_error": True,
                    "content": NO_RESULT,
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "content": [text("3")],
                    "is_error": True,
                },
                text("Wait"),
            ],
        },
        {"role": "system", "content": [text("S")]},
        {"role": "user", "content": [text("Go")]},
    ]


def test_an_assistant_that_goes_on_without_results_has_them_told_as_lost() -> None:
    found = messages(USER, calls(("a", "f")), Turn("assistant", "So"), USER)
    assert [message["role"] for message in found] == [
        "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert found[2]["content"][0]["content"] == NO_RESULT


def test_a_result_that_no_call_waits_for_is_said_by_the_user() -> None:
    found = messages(
        USER,
        calls(("a", "f")),
        Turn("tool", "1", answers_call="a"),
        Turn("tool", "2", answers_call="z"),
    )
    assert found[2]["content"][1:] == [text("2")]


def test_a_result_of_the_old_form_answers_the_call_of_its_name() -> None:
    found = messages(USER, calls(("a", "f"), ("b", "g")), Turn("function", "2", name="g"))
    assert found[2]["content"][1] == {
        "type": "tool_result",
        "tool_use_id": "b",
        "content": [text("2")],
    }


def test_ids_that_are_none_or_come_again_are_written_anew_in_call_and_result() -> None:
    found = messages(
        USER,
        calls(("call_0", "f")),
        Turn("tool", "1", answers_call="call_0"),
        calls(("call_0", "f"), ("functions.f:1", "f"), ("", "f")),
        Turn("tool", "2", answers_call="call_0"),
        Turn("tool", "3", answers_call="functions.f:1"),
        Turn("tool", "4", answers_call=""),
    )
    ids = [block["id"] for block in (*found[1]["content"], *found[3]["content"])]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 4
    assert all(one.startswith("toolu_") for one in ids[1:])
    assert [one["tool_use_id"] for one in found[4]["content"]] == ids[1:]
    assert [one["content"] for one in found[4]["content"]] == [
        [text("2")],
        [text("3")],
        [text("4")],
    ]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": ', {"INVALID_JSON": '{"a": '}),
        ("[1]", {"INVALID_JSON": "[1]"}),
    ],
)
def test_arguments_are_an_object_whatever_the_model_printed(
    arguments: str, given: dict[str, Any]
) -> None:
    turn = Turn("assistant", None, calls=(ToolCall("a", "f", arguments),))
    assert messages(USER, turn)[1]["content"] == [
        {"type": "tool_use", "id": "a", "name": "f", "input": given}
    ]


# ── Opaque state ─────────────────────────────────────────────────────────────


def test_signed_thoughts_go_back_unchanged_at_their_places_and_others_do_not() -> None:
    turn = Turn(
        "assistant",
        None,
        blocks=(
            TurnBlock("reasoning", " I think\n", opaque=(SIGNED,)),
            TurnBlock("reasoning", "", opaque=(Opaque("anthropic", "redacted", "xyz"),)),
            TurnBlock("reasoning", "unsigned"),
            TurnBlock("reasoning", "strange", opaque=(Opaque("google", "signature", "g"),)),
            TurnBlock("text", "So"),
            TurnBlock("reasoning", "", opaque=(SIGNED,)),
            TurnBlock("call", "{}", "f", "a", opaque=(Opaque("google", "signature", "g"),)),
        ),
    )
    assert messages(USER, turn)[1]["content"] == [
        {"type": "thinking", "thinking": " I think\n", "signature": SIGNED.data},
        {"type": "redacted_thinking", "data": "xyz"},
        text("So"),
        {"type": "thinking", "thinking": "", "signature": SIGNED.data},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]


def test_thoughts_at_the_end_of_a_turn_are_left_out() -> None:
    turn = Turn(
        "assistant",
        None,
        blocks=(TurnBlock("text", "A"), TurnBlock("reasoning", "", opaque=(SIGNED,))),
    )
    assert messages(USER, turn, USER)[1]["content"] == [text("A")]
    alone = Turn("assistant", None, blocks=(TurnBlock("reasoning", "x", opaque=(SIGNED,)),))
    assert messages(USER, alone, USER) == [{"role": "user", "content": [text("Hi"), text("Hi")]}]


# ── Media ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "source", "block"),
    [
        (
            "image",
            PICTURE,
            ("image", {"type": "base64", "media_type": "image/png", "data": "aGk="}),
        ),
        (
            "image",
            "data:image/jpg;base64,aGk=",
            ("image", {"type": "base64", "media_type": "image/jpeg", "data": "aGk="}),
        ),
        ("image", "https://x.test/a", ("image", {"type": "url", "url": "https://x.test/a"})),
        (
            "file",
            "data:application/pdf;base64,aGk=",
            ("document", {"type": "base64", "media_type": "application/pdf", "data": "aGk="}),
        ),
        (
            "file",
            "data:text/csv;charset=utf-8;base64,aGk=",
            ("document", {"type": "text", "media_type": "text/plain", "data": "hi"}),
        ),
        (
            "file",
            "http://x.test/a.pdf",
            ("document", {"type": "url", "url": "http://x.test/a.pdf"}),
        ),
    ],
)
def test_media_are_blocks(kind: Any, source: str, block: tuple[str, dict[str, Any]]) -> None:
    turn = Turn("user", (TextPart("See"), MediaPart(kind, source, "messages[0]")))
    assert messages(turn)[0]["content"] == [text("See"), {"type": block[0], "source": block[1]}]


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("image", ""),
        ("image", "file:///etc/passwd"),
        ("image", "data:image/tiff;base64,aGk="),
        ("image", "data:image/png,hi"),
        ("file", "data:application/zip;base64,aGk="),
        ("file", "data:text/plain;base64,!"),
        ("audio", "data:audio/wav;base64,aGk="),
        ("video", "https://x.test/a.mp4"),
    ],
)
def test_other_media_are_refused_with_their_path(kind: Any, source: str) -> None:
    turn = Turn("user", (MediaPart(kind, source, "messages[0].content[1]"),))
    assert refused(asked(turn)) == "messages[0].content[1]"


def test_a_system_message_may_have_no_pictures() -> None:
    turn = Turn("system", (TextPart("See"), MediaPart("image", PICTURE, "messages[0].content[1]")))
    assert refused(asked(turn, USER)) == "messages[0].content[1]"


def test_a_result_may_have_pictures() -> None:
    result = Turn("tool", (TextPart("See"), MediaPart("image", PICTURE, "x")), answers_call="a")
    found = messages(USER, calls(("a", "f")), result)[2]["content"][0]["content"]
    assert [block["type"] for block in found] == ["text", "image"]


# ── Tools ────────────────────────────────────────────────────────────────────

TOOL = Tool("f", "Looks.", {"properties": {"a": {"type": "string"}}}, strict=True)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (ToolChoice(), {"type": "auto"}),
        (ToolChoice("required"), {"type": "any"}),
        (ToolChoice("named", "f"), {"type": "tool", "name": "f"}),
        (ToolChoice("none"), {"type": "none"}),
        (ToolChoice(parallel=False), {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice("none", parallel=False), {"type": "none"}),
    ],
)
def test_tools_and_the_choice_among_them(choice: ToolChoice, said: dict[str, Any]) -> None:
    fields, _ = written(asked(tools=(TOOL, Tool("g")), choice=choice))
    assert fields["tools"] == [
        {
            "name": "f",
            "description": "Looks.",
            "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
            "strict": True,
        },
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
    ]
    assert fields["tool_choice"] == said


def test_only_allowed_tools_are_offered() -> None:
    choice = ToolChoice("required", allowed=("g",))
    fields, _ = written(asked(tools=(TOOL, Tool("g")), choice=choice))
    assert [tool["name"] for tool in fields["tools"]] == ["g"]


def test_a_history_with_calls_has_tools_even_if_none_is_offered() -> None:
    fields, _ = written(asked(USER, calls(("a", "f")), Turn("tool", "1", answers_call="a")))
    assert fields["tools"] == [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]
    assert fields["tool_choice"] == {"type": "none"}


# ── Thinking ─────────────────────────────────────────────────────────────────

BUDGETS = WriterOptions("m", "anthropic", 8_000, frozenset({"thinking_by_budget"}))
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
        (OPTIONS, Thinking(budget=9_000), None, ("enabled", 9_000), None, 17_000, ()),
        (OPTIONS, Thinking(budget=5), 4_000, ("enabled", 1_024), None, 4_000, ()),
        (OPTIONS, Thinking(budget=2_000), 1_024, None, None, 1_024, ("reasoning_effort",)),
        (OPTIONS, Thinking(number=0.5), 10, None, None, 10, ("reasoning_effort",)),
        (BUDGETS, Thinking("low"), 9_000, ("enabled", 2_048), None, 9_000, ()),
        (BUDGETS, Thinking(on=True), None, ("enabled", 8_192), None, 16_192, ()),
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


# ── How it is drawn ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sampling", "fields", "ignored"),
    [
        (Sampling(temperature=0.5), {"temperature": 0.5}, ()),
        (Sampling(temperature=1.5), {"temperature": 1.0}, ("temperature",)),
        (Sampling(temperature=1.0, top_p=1.0), {}, ()),
        (Sampling(temperature=0.5, top_p=0.5), {"temperature": 0.5}, ("top_p",)),
        (Sampling(top_p=0.5, top_k=40), {"top_p": 0.5, "top_k": 40}, ()),
        (Sampling(top_k=-1), {}, ()),
        (Sampling(stop=("A", "B")), {"stop_sequences": ["A", "B"]}, ()),
        (Sampling(seed=1, min_p=0.1, stop_token_ids=(2,)), {}, ("min_p", "seed", "stop_token_ids")),
        (
            Sampling(max_tokens=5, frequency_penalty=1.0, where={"frequency_penalty": "penalty"}),
            {"max_tokens": 5},
            ("penalty",),
        ),
    ],
)
def test_sampling(sampling: Sampling, fields: dict[str, Any], ignored: tuple[str, ...]) -> None:
    usual = written(asked())[0]
    assert written(asked(sampling=sampling)) == ({**usual, **fields}, ignored)


def test_who_thinks_is_not_told_how_to_draw() -> None:
    sampling = Sampling(temperature=0.5, top_k=3)
    fields, ignored = written(asked(sampling=sampling, thinking=Thinking("low")))
    assert not {"temperature", "top_k"} & set(fields)
    assert ignored == ("temperature", "top_k")


def test_a_schema_is_the_form_of_the_answer_and_its_objects_are_closed() -> None:
    schema = '{"type":"object","properties":{"a":{"type":"object","properties":{},"additionalProperties":true}}}'
    constraint = Constraint("json_schema", schema, "response_format")
    fields, _ = written(asked(sampling=Sampling(constraint=constraint)))
    assert fields["output_config"] == {
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {
                    "a": {"type": "object", "properties": {}, "additionalProperties": True}
                },
                "additionalProperties": False,
            },
        }
    }


def test_any_object_of_json_is_a_wish_only_where_it_may_be_one() -> None:
    wish = Constraint("json_object", "", "response_format", strict=False)
    assert written(asked(sampling=Sampling(constraint=wish)))[1] == ("response_format",)
    must = Constraint("json_object", "", "response_format")
    assert refused(asked(sampling=Sampling(constraint=must))) == "response_format"


@pytest.mark.parametrize(
    ("request_", "where"),
    [
        (asked(sampling=Sampling(n=2)), "n"),
        (asked(sampling=Sampling(logprobs=0)), "logprobs"),
        (asked(sampling=Sampling(adapter="a")), "adapter"),
        (asked(sampling=Sampling(stop=("\n",), where={"stop": "stop_sequences"})), "stop_sequences"),
        (asked(sampling=Sampling(constraint=Constraint("regex", "a", "regex"))), "regex"),
        (asked(USER, Turn("assistant", "So")), "messages"),
        (asked(template="x"), "chat_template"),
        (asked(documents=({"a": "b"},)), "documents"),
        (GenerateRequest("m", (TextPrompt("x"),), Sampling(), True), "prompt"),
    ],
)  # fmt: skip
def test_what_would_be_another_answer_is_refused(request_: GenerateRequest, where: str) -> None:
    assert refused(request_) == where


def test_an_answer_goes_on_from_given_text_without_blanks_at_its_end() -> None:
    found = messages(USER, Turn("assistant", "So \n"), continue_final_message=True)
    assert found[1]["content"] == [text("So")]


def test_what_a_model_was_found_to_refuse_is_left_out_and_told() -> None:
    lacks = frozenset({"temperature", "thinking", "output_config.effort", "top_k"})
    options = WriterOptions("m", "anthropic", lacks=lacks)
    sampling = Sampling(temperature=0.5, where={"temperature": "generationConfig.temperature"})
    assert written(asked(sampling=sampling), options)[1] == ("generationConfig.temperature",)
    fields, ignored = written(asked(thinking=Thinking("low")), options)
    assert ignored == ("output_config.effort", "thinking")
    assert not {"thinking", "output_config"} & set(fields)
    stops = WriterOptions("m", "anthropic", lacks=frozenset({"stop_sequences"}))
    assert refused(asked(sampling=Sampling(stop=("A",))), stops) == "stop_sequences"


# ── Any request ──────────────────────────────────────────────────────────────


@settings(max_examples=150, deadline=None)
@given(
    wishes(),
    st.sets(st.sampled_from(("systems_first", "thinking_by_budget", "thinking_adaptive_only"))),
)
def test_any_body_is_one_that_the_api_takes(request_: GenerateRequest, quirks: set[str]) -> None:
    options = WriterOptions("m", "anthropic", quirks=frozenset(quirks))
    found = PROVIDER.write(request_, options).fields
    assert refusal(found) == ""


@settings(max_examples=60, deadline=None)
@given(wishes())
def test_every_word_and_signature_of_its_issuer_is_in_the_body(request_: GenerateRequest) -> None:
    body = PROVIDER.write(request_, OPTIONS).fields
    told = repr((body.get("system"), body["messages"]))
    [prompt] = request_.prompts
    assert isinstance(prompt, ChatPrompt)
    for turn in prompt.turns:
        if isinstance(turn.content, str):
            assert repr(turn.content.strip())[1:-1] in told
