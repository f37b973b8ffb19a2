"""Bodies for Bedrock: what each wish becomes, what cannot be said, and that the API's own model takes all of them."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.opaque import REDACTED, SIGNATURE, Opaque
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
from smg_node.dialects.converse.conversation import NO_OUTPUT, NO_RESULT
from smg_node.dialects.converse.dialect import converse_provider
from smg_node.dialects.converse.vendor_answer import SCHEMA_TOOL
from smg_node.dialects.provider_dialect import WriterOptions, Written
from support.providers.converse_judge import refusal
from support.providers.converse_requests import PNG, SCHEMA, requests

CLAUDE = WriterOptions("eu.anthropic.claude-sonnet-5-v1:0", "anthropic")
NOVA = WriterOptions("eu.amazon.nova-2-lite-v1:0", "bedrock")
GPT = WriterOptions("openai.gpt-oss-120b-1:0", "bedrock")
QWEN = WriterOptions("qwen.qwen3-32b-v1:0", "bedrock")
USER = Turn("user", "Hello")
SAID = {"role": "user", "content": [{"text": "Hello"}]}
TOOL = Tool("look_up", "Looks it up.", {"type": "object", "properties": {}}, where="tools[0]")
SPEC = {
    "toolSpec": {
        "name": "look_up",
        "description": "Looks it up.",
        "inputSchema": {"json": {"type": "object", "properties": {}}},
    }
}


def written(
    *turns: Turn, options: WriterOptions = NOVA, sampling: Sampling | None = None, **prompt: Any
) -> Written:
    """Return what a request becomes, which the API's own model takes."""
    chat = ChatPrompt(turns or (USER,), **prompt)
    request = GenerateRequest("ours", (chat,), sampling or Sampling(), True)
    found = converse_provider(options.model).write(request, options)
    assert refusal(found.fields) == ""
    return found


def fields(*turns: Turn, **given: Any) -> dict[str, Any]:
    return written(*turns, **given).fields


def messages(*turns: Turn, **given: Any) -> Any:
    return fields(*turns, **given)["messages"]


def use(call_id: str, name: str = "look_up", **given: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": given}}


def result(call_id: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": call_id, "content": list(content), **more}}


def test_a_plain_request_says_nothing_but_its_words() -> None:
    assert written() == Written({"messages": [SAID]})


# ── Turns ────────────────────────────────────────────────────────────────────


def test_systems_come_first_and_neighbours_are_joined() -> None:
    parts = (TextPart("a"), TextPart(" "), TextPart("b"))
    found = fields(
        Turn("system", "One."),
        Turn("developer", "Two."),
        Turn("user", parts),
        Turn("user", ""),
        Turn("system", "Three."),
        Turn("user", "c"),
        Turn("assistant", "d"),
        Turn("assistant", "e"),
        USER,
    )
    assert found == {
        "system": [{"text": "One."}, {"text": "Two."}, {"text": "Three."}],
        "messages": [
            {"role": "user", "content": [{"text": "a"}, {"text": "b"}, {"text": "c"}]},
            {"role": "assistant", "content": [{"text": "d"}, {"text": "e"}]},
            SAID,
        ],
    }


def test_claude_hears_a_later_system_where_it_was_said() -> None:
    turns = (Turn("system", "One."), USER, Turn("system", "Two."), USER)
    assert fields(*turns, options=CLAUDE, systems_stay=True) == {
        "system": [{"text": "One."}],
        "messages": [SAID, {"role": "system", "content": [{"text": "Two."}]}, SAID],
    }
    first = WriterOptions(CLAUDE.model, "anthropic", quirks=frozenset({"systems_first"}))
    for options in (NOVA, first):
        found = fields(*turns, options=options, systems_stay=True)
        assert found["system"] == [{"text": "One."}, {"text": "Two."}]


def test_a_system_alone_is_what_the_user_says() -> None:
    assert fields(Turn("system", "Hello")) == {"messages": [SAID]}


def test_calls_and_their_results_in_any_order() -> None:
    calls = (ToolCall("a", "look_up", '{"q":1}'), ToolCall("b", "look_up", ""))
    found = messages(
        USER,
        Turn("assistant", "I look.", calls=calls),
        Turn("tool", "second", answers_call="b"),
        Turn("tool", (TextPart("first"), MediaPart("image", PNG, "x")), answers_call="a"),
        Turn("user", "And?"),
        tools=(TOOL,),
    )
    image = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}
    assert found[1]["content"] == [{"text": "I look."}, use("a", q=1), use("b")]
    assert found[2]["content"] == [
        result("a", {"text": "first"}, image),
        result("b", {"text": "second"}),
        {"text": "And?"},
    ]


@pytest.mark.parametrize(
    ("turn", "block"),
    [
        (Turn("tool", "no", answers_call="a", extra={"is_error": True}), ["no", "error"]),
        (Turn("tool", " ", answers_call="a"), [NO_OUTPUT, None]),
        (Turn("function", "x", name="look_up"), ["x", None]),
        (Turn("user", "x"), [NO_RESULT, "error"]),
        (Turn("tool", "x", answers_call="other"), [NO_RESULT, "error"]),
    ],
)
def test_every_call_has_a_result(turn: Turn, block: list[str | None]) -> None:
    answer = Turn("assistant", None, calls=(ToolCall("a", "look_up", "{}"),))
    found = messages(USER, answer, turn, tools=(TOOL,))[2]["content"][0]["toolResult"]
    assert [found["content"][0]["text"], found.get("status")] == block


def test_ids_and_names_that_are_none_there_are_written_anew() -> None:
    calls = (
        ToolCall("", "a.b", "{}"),
        ToolCall("same", "look_up", "{}"),
        ToolCall("same", "look_up", "{}"),
        ToolCall("i" * 65, "n" * 65, "{}"),
    )
    results = [Turn("tool", str(at), answers_call=one.call_id) for at, one in enumerate(calls)]
    found = messages(USER, Turn("assistant", None, calls=calls), *results, tools=(TOOL,))
    used = [block["toolUse"] for block in found[1]["content"]]
    told = [block["toolResult"] for block in found[2]["content"]]
    assert [one["name"] for one in used] == ["a_b", "look_up", "look_up", "n" * 64]
    assert len({one["toolUseId"] for one in used}) == 4
    assert used[1]["toolUseId"] == "same"
    assert [one["toolUseId"] for one in told] == [one["toolUseId"] for one in used]
    assert [one["content"] for one in told] == [[{"text": str(at)}] for at in range(4)]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("[1]", {"INVALID_JSON": "[1]"}),
        ('{"cut":', {"INVALID_JSON": '{"cut":'}),
        ('"{\\"a\\":1}"', {"a": 1}),
    ],
)
def test_arguments_are_an_object_whatever_they_were(arguments: str, given: Any) -> None:
    answer = Turn("assistant", None, calls=(ToolCall("a", "look_up", arguments),))
    assert messages(USER, answer, USER, tools=(TOOL,))[1]["content"] == [use("a", **given)]


@pytest.mark.parametrize(
    ("options", "thoughts"),
    [
        (
            CLAUDE,
            [
                {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}},
                {"reasoningContent": {"redactedContent": "RXZRQg=="}},
            ],
        ),
        (NOVA, [{"reasoningContent": {"redactedContent": "YQ=="}}]),
    ],
)
def test_thoughts_go_back_to_their_issuer_only(options: WriterOptions, thoughts: Any) -> None:
    blocks = (
        TurnBlock("reasoning", "Hm.", opaque=(Opaque("anthropic", SIGNATURE, "s"),)),
        TurnBlock("reasoning", "", opaque=(Opaque("anthropic", REDACTED, "EvQB"),)),
        TurnBlock("reasoning", "", opaque=(Opaque("bedrock", REDACTED, "YQ=="),)),
        TurnBlock("reasoning", "told to nobody"),
        TurnBlock("text", "So."),
        TurnBlock("call", "{}", "look_up", "a"),
        TurnBlock("reasoning", "", opaque=(Opaque(options.issuer, SIGNATURE, "last"),)),
    )
    found = messages(
        USER, Turn("assistant", None, blocks=blocks), USER, tools=(TOOL,), options=options
    )
    assert found[1]["content"] == [*thoughts, {"text": "So."}, use("a")]


def test_where_no_tool_may_be_called_earlier_calls_are_told_as_text() -> None:
    blocks = (
        TurnBlock("reasoning", "Hm.", opaque=(Opaque("anthropic", SIGNATURE, "s"),)),
        TurnBlock("call", '{"q":1}', "look_up", "a"),
        TurnBlock("call", "", "look_up", "b"),
    )
    turns = (
        USER,
        Turn("assistant", None, blocks=blocks),
        Turn("tool", "found", answers_call="a"),
        Turn("user", "And?"),
    )
    expected = [
        SAID,
        {
            "role": "assistant",
            "content": [{"text": '[call of look_up: {"q":1}]'}, {"text": "[call of look_up: {}]"}],
        },
        {
            "role": "user",
            "content": [
                {"text": "[result of look_up]"},
                {"text": "found"},
                {"text": "[error of look_up]"},
                {"text": NO_RESULT},
                {"text": "And?"},
            ],
        },
    ]
    assert fields(*turns, options=CLAUDE) == {"messages": expected}
    none = ToolChoice("none")
    assert fields(*turns, options=CLAUDE, tools=(TOOL,), choice=none) == {"messages": expected}


def test_the_answer_goes_on_from_given_text() -> None:
    turns = (USER, Turn("assistant", "So it is \n"))
    assert messages(*turns, continue_final_message=True)[1] == {
        "role": "assistant",
        "content": [{"text": "So it is"}],
    }


# ── Media ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "source", "block"),
    [
        ("image", "data:image/jpg;base64,AAAA", {"image": {"format": "jpeg"}}),
        ("image", "data:image/WEBP;base64,AAAA", {"image": {"format": "webp"}}),
        (
            "file",
            "data:application/pdf;base64,AAAA",
            {"document": {"format": "pdf", "name": "document 1"}},
        ),
        (
            "file",
            "data:text/x-python;charset=utf-8;base64,AAAA",
            {"document": {"format": "txt", "name": "document 1"}},
        ),
        ("video", "data:video/3gpp;base64,AAAA", {"video": {"format": "three_gp"}}),
        ("audio", "data:audio/mpeg;base64,AAAA", {"audio": {"format": "mp3"}}),
    ],
)
def test_media_are_bytes_of_a_format(kind: Any, source: str, block: dict[str, Any]) -> None:
    part = MediaPart(kind, source, "messages[0].content[0]")
    [[name, said]] = block.items()
    expected = {name: {**said, "source": {"bytes": "AAAA"}}}
    assert messages(Turn("user", (part,)))[0]["content"] == [expected]


def test_documents_have_names_of_their_own() -> None:
    part = MediaPart("file", "data:text/csv;base64,AAAA", "x")
    found = messages(Turn("user", (part, part)), Turn("assistant", "x"), Turn("user", (part,)))
    names = [block["document"]["name"] for at in (0, 2) for block in found[at]["content"]]
    assert names == ["document 1", "document 2", "document 3"]


# ── Tools ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (ToolChoice(), {"tools": [SPEC]}),
        (ToolChoice("required"), {"tools": [SPEC], "toolChoice": {"any": {}}}),
        (
            ToolChoice("named", "look_up"),
            {"tools": [SPEC], "toolChoice": {"tool": {"name": "look_up"}}},
        ),
        (ToolChoice(allowed=("look_up",)), {"tools": [SPEC]}),
        (ToolChoice("none"), None),
    ],
)
def test_the_choice_among_tools(choice: ToolChoice, told: Any) -> None:
    other = Tool("other", where="tools[1]")
    offered = (TOOL,) if choice.allowed is None else (TOOL, other)
    assert fields(tools=offered, choice=choice).get("toolConfig") == told


def test_a_tool_without_parameters_takes_an_object() -> None:
    bare = Tool("a", " ", None, True, where="x")
    loose = Tool("b", None, {"properties": {}}, where="x")
    assert fields(tools=(bare, loose))["toolConfig"]["tools"] == [
        {
            "toolSpec": {
                "name": "a",
                "inputSchema": {"json": {"type": "object", "properties": {}}},
                "strict": True,
            }
        },
        {
            "toolSpec": {
                "name": "b",
                "inputSchema": {"json": {"type": "object", "properties": {}}},
            }
        },
    ]


def test_one_call_at_most_is_not_to_be_had() -> None:
    one = ToolChoice(parallel=False)
    assert written(tools=(TOOL,), choice=one).ignored == ("parallel_tool_calls",)
    assert written(choice=one).ignored == ()


# ── How it is drawn ──────────────────────────────────────────────────────────

DRAWN = Sampling(max_tokens=5, temperature=0.5, top_p=0.9, top_k=40, stop=("END",))


def test_what_says_how_it_is_drawn() -> None:
    usual = {"maxTokens": 5, "stopSequences": ["END"], "temperature": 0.5}
    nova = written(sampling=DRAWN)
    assert nova.fields["inferenceConfig"] == {**usual, "topP": 0.9}
    assert nova.fields["additionalModelRequestFields"] == {"inferenceConfig": {"topK": 40}}
    assert nova.ignored == ()
    claude = written(sampling=DRAWN, options=CLAUDE)
    assert claude.fields["inferenceConfig"] == usual
    assert claude.fields["additionalModelRequestFields"] == {"top_k": 40}
    assert claude.fields["additionalModelResponseFieldPaths"] == ["/stop_sequence"]
    assert claude.ignored == ("top_p",)
    assert written(sampling=DRAWN, options=GPT).ignored == ("top_k",)


def test_the_usual_is_said_only_where_it_is_not_the_models_own() -> None:
    ones = Sampling(temperature=1.0, top_p=1.0, top_k=-1)
    assert written(sampling=ones, options=CLAUDE) == Written({"messages": [SAID]})
    assert fields(sampling=ones)["inferenceConfig"] == {"temperature": 1.0, "topP": 1.0}


def test_a_temperature_above_one_is_one() -> None:
    hot = Sampling(temperature=1.8)
    for options in (CLAUDE, NOVA):
        found = written(sampling=hot, options=options)
        assert found.fields["inferenceConfig"] == {"temperature": 1.0}
        assert found.ignored == ("temperature",)


def test_what_only_engines_know_is_named_in_the_clients_words() -> None:
    sampling = Sampling(
        seed=1,
        min_p=0.1,
        logit_bias={5: 1.0},
        stop_token_ids=(7,),
        where={"seed": "generationConfig.seed"},
    )
    found = written(sampling=sampling, kwargs={"x": 1})
    assert found.ignored == (
        "min_p",
        "generationConfig.seed",
        "stop_token_ids",
        "logit_bias",
        "chat_template_kwargs",
    )


# ── Thinking ─────────────────────────────────────────────────────────────────


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


# ── The form of the answer ───────────────────────────────────────────────────

JSON_SCHEMA = Sampling(constraint=Constraint("json_schema", SCHEMA, "response_format"))
JSON_OBJECT = Sampling(constraint=Constraint("json_object", "", "response_format"))
BY_TOOL = WriterOptions(NOVA.model, "bedrock", quirks=frozenset({"schema_by_tool"}))
FOUND_OUT = WriterOptions(NOVA.model, "bedrock", lacks=frozenset({"outputConfig.textFormat"}))


def test_a_schema_is_a_text_format_with_closed_objects() -> None:
    [said] = fields(sampling=JSON_SCHEMA)["outputConfig"].values()
    closed = {**json.loads(SCHEMA), "additionalProperties": False}
    assert said["type"] == "json_schema"
    assert json.loads(said["structure"]["jsonSchema"]["schema"]) == closed


@pytest.mark.parametrize("options", [BY_TOOL, FOUND_OUT])
def test_a_schema_is_a_forced_call_where_there_is_no_text_format(options: WriterOptions) -> None:
    found = fields(sampling=JSON_SCHEMA, options=options)
    [tool] = found["toolConfig"]["tools"]
    assert tool["toolSpec"]["inputSchema"] == {"json": json.loads(SCHEMA)}
    assert found["toolConfig"]["toolChoice"] == {"tool": {"name": SCHEMA_TOOL}}
    assert "outputConfig" not in found
    among = fields(sampling=JSON_SCHEMA, options=options, tools=(TOOL,))["toolConfig"]
    assert [one["toolSpec"]["name"] for one in among["tools"]] == ["look_up", SCHEMA_TOOL]
    assert among["toolChoice"] == {"any": {}}


def test_any_object_is_a_forced_call() -> None:
    [tool] = fields(sampling=JSON_OBJECT)["toolConfig"]["tools"]
    assert tool["toolSpec"]["inputSchema"] == {"json": {"type": "object"}}


# ── What a model was found to refuse ─────────────────────────────────────────


@pytest.mark.parametrize(
    ("lacks", "ignored"),
    [
        ("temperature", "temperature"),
        ("inferenceConfig.temperature", "temperature"),
        ("topP", "top_p"),
        ("top_p", "top_p"),
        ("max_tokens", "max_tokens"),
        ("effort", "reasoning_effort"),
    ],
)
def test_what_a_model_refuses_is_left_out_and_named(lacks: str, ignored: str) -> None:
    options = WriterOptions(NOVA.model, "bedrock", lacks=frozenset({lacks, "unheard_of"}))
    wish = Thinking(effort="low")
    usual = written(sampling=DRAWN, thinking=wish).fields
    found = written(sampling=DRAWN, thinking=wish, options=options)
    assert found.ignored == (ignored,)
    kept = {name for part in found.fields.values() if isinstance(part, dict) for name in part}
    said = {name for part in usual.values() if isinstance(part, dict) for name in part}
    assert len(said - kept) == 1


def refused(*turns: Turn, **given: Any) -> SmgError:
    with pytest.raises(SmgError) as raised:
        written(*turns, **given)
    assert raised.value.kind is ErrorKind.INVALID_REQUEST
    return raised.value


UNFORCED = WriterOptions(NOVA.model, "bedrock", lacks=frozenset({"toolConfig.toolChoice.any"}))
UNSTOPPED = WriterOptions(NOVA.model, "bedrock", lacks=frozenset({"stopSequences"}))
AT = "messages[0].content[0]"


@pytest.mark.parametrize(
    ("turns", "given", "where"),
    [
        ((), {"sampling": Sampling(n=2)}, "n"),
        ((), {"sampling": Sampling(logprobs=1)}, "logprobs"),
        ((), {"sampling": Sampling(prompt_logprobs=1)}, "prompt_logprobs"),
        ((), {"sampling": Sampling(adapter="a", where={"adapter": "lora_path"})}, "lora_path"),
        ((), {"sampling": Sampling(constraint=Constraint("regex", "a", "regex"))}, "regex"),
        ((), {"sampling": Sampling(stop=("\n",)), "options": CLAUDE}, "stop"),
        ((), {"sampling": Sampling(stop=("a",)), "options": UNSTOPPED}, "stop"),
        ((), {"template": "x"}, "chat_template"),
        ((), {"documents": ({"a": 1},)}, "documents"),
        ((), {"tools": (Tool("a.b", where="tools[3]"),)}, "tools[3]"),
        ((), {"tools": (Tool(SCHEMA_TOOL, where="tools[3]"),)}, "tools[3]"),
        (
            (),
            {"tools": (TOOL,), "choice": ToolChoice("required"), "options": UNFORCED},
            "tool_choice",
        ),
        ((Turn("user", " "),), {}, "messages"),
        ((Turn("assistant", "x"), USER), {}, "messages"),
        ((USER, Turn("assistant", "x")), {}, "messages"),
        ((Turn("user", (MediaPart("image", "https://a/b.png", AT),)),), {}, AT),
        ((Turn("user", (MediaPart("image", "data:image/png,x", AT),)),), {}, AT),
        ((Turn("user", (MediaPart("image", "data:image/png;base64,", AT),)),), {}, AT),
        ((Turn("user", (MediaPart("image", "data:image/tiff;base64,AA==", AT),)),), {}, AT),
        ((Turn("user", (MediaPart("file", "", AT),)),), {}, AT),
        ((Turn("system", (MediaPart("image", PNG, AT),)), USER), {}, AT),
    ],
)
def test_what_cannot_be_said_is_an_error_at_its_place(turns: Any, given: Any, where: str) -> None:
    assert refused(*turns, **given).where == where


def test_claude_may_be_told_of_a_beginning_of_its_own() -> None:
    found = messages(Turn("assistant", "x"), USER, options=CLAUDE)
    assert found == [{"role": "assistant", "content": [{"text": "x"}]}, SAID]


def test_only_conversations_are_written() -> None:
    request = GenerateRequest("ours", (TextPrompt("x"),), Sampling(), True)
    with pytest.raises(SmgError) as raised:
        converse_provider(NOVA.model).write(request, NOVA)
    assert raised.value.where == "prompt"


def attempt(request: GenerateRequest, options: WriterOptions) -> Written | SmgError:
    try:
        return converse_provider(options.model).write(request, options)
    except SmgError as error:
        return error


@given(requests(), st.sampled_from([CLAUDE, NOVA, GPT, BY_TOOL, FOUND_OUT]))
def test_any_request_is_a_body_that_the_api_takes_or_an_error_at_its_place(
    request: GenerateRequest, options: WriterOptions
) -> None:
    found = attempt(request, options)
    event(type(found).__name__)
    if isinstance(found, SmgError):
        assert (found.kind, bool(found.where)) == (ErrorKind.INVALID_REQUEST, True)
        return
    assert refusal(found.fields) == ""
    roles = [message["role"] for message in found.fields["messages"]]
    assert all(one != other for one, other in pairwise(roles))
