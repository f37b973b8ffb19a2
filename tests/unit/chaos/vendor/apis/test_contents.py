"""generateContent of stand-ins: chunks as they really come, and what is refused."""

import json
from typing import Any

import pytest

from support.providers.stand_ins import Desk, sse

CLOCK: Any = {"functionDeclarations": [{"name": "clock"}, {"name": "bell"}]}
MODEL = "gemini-3-flash"
STREAM = "streamGenerateContent?alt=sse"


def path(verb: str = "generateContent", model: str = MODEL) -> str:
    return f"/v1beta/models/{model}:{verb}"


def user(text: str) -> Any:
    return {"role": "user", "parts": [{"text": text}]}


def model(*parts: Any) -> Any:
    return {"role": "model", "parts": list(parts)}


def asked(text: str = "hello", **fields: Any) -> Any:
    return {"contents": [user(text)], **fields}


def call(name: str = "clock", **more: Any) -> Any:
    return {"functionCall": {"name": name, "args": {}}, **more}


def response(*names: str) -> Any:
    parts = [{"functionResponse": {"name": name, "response": {"output": "noon"}}} for name in names]
    return {"role": "user", "parts": parts}


def test_a_stream_is_framed_with_crlf_and_has_no_done() -> None:
    stream = Desk("gemini").streamed(path(STREAM), asked())
    assert stream.count(b"\r\n\r\n") == stream.count(b"data: ") == len(sse(stream))
    assert b"[DONE]" not in stream
    assert b"\n\n" not in stream


def test_without_sse_the_stream_is_an_array() -> None:
    chunks = json.loads(Desk("gemini").streamed(path("streamGenerateContent"), asked()))
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    assert "".join(part["text"] for part in parts) == "You said: hello (turns=1)"


def test_the_text_is_signed_by_an_empty_part_at_the_end() -> None:
    last = sse(Desk("gemini").streamed(path(STREAM), asked()))[-1]["candidates"][0]
    [part] = last["content"]["parts"]
    assert (part["text"], last["finishReason"]) == ("", "STOP")
    older = sse(Desk("gemini").streamed(path(STREAM, "gemini-2.5-flash"), asked()))
    assert "thoughtSignature" not in json.dumps(older)


@pytest.mark.parametrize(
    ("text", "config", "finish", "content"),
    [
        ("call clock", {}, "STOP", True),
        ("hello", {"maxOutputTokens": 2}, "MAX_TOKENS", {"role": "model"}),
        ("filter", {}, "SAFETY", None),
    ],
)
def test_reasons_are_those_of_gemini(text: str, config: Any, finish: str, content: Any) -> None:
    body = asked(text, tools=[CLOCK], generationConfig=config)
    for candidate in (
        Desk("gemini").told(path(), body)["candidates"][0],
        sse(Desk("gemini").streamed(path(STREAM), body))[-1]["candidates"][0],
    ):
        assert candidate["finishReason"] == finish
        if content is True:
            assert candidate["finishMessage"] == "Model generated function call(s)."
        else:
            assert candidate.get("content") == content


def test_a_blocked_prompt_has_no_candidates() -> None:
    whole = Desk("gemini").told(path(), asked("refuse"))
    assert whole["promptFeedback"] == {"blockReason": "PROHIBITED_CONTENT"}
    assert "candidates" not in whole
    usage = whole["usageMetadata"]
    assert (usage["candidatesTokenCount"], usage["totalTokenCount"]) == (
        0,
        usage["promptTokenCount"],
    )
    assert sse(Desk("gemini").streamed(path(STREAM), asked("refuse")))[0]["promptFeedback"]


def test_ids_of_calls_depend_on_the_request_and_older_models_have_none() -> None:
    def ids(name: str) -> set[bool]:
        desk = Desk("gemini")
        answers = [
            desk.told(path(model=name), asked(f"clock {number}", tools=[CLOCK]))
            for number in range(60)
        ]
        parts = [answer["candidates"][0]["content"]["parts"][0] for answer in answers]
        return {"id" in part["functionCall"] for part in parts}

    assert ids(MODEL) == {True, False}
    assert ids("gemini-2.5-flash") == {False}


def test_both_spellings_are_taken_even_mixed() -> None:
    body = {
        "contents": {"parts": {"text": "call clock"}},
        "system_instruction": {"parts": [{"text": "be kind"}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "clock", "parameters_json_schema": {"type": "object"}}
                ]
            }
        ],
        "tool_config": {
            "function_calling_config": {"mode": "any", "allowed_function_names": ["clock"]}
        },
        "generation_config": {
            "max_output_tokens": 50,
            "thinking_config": {"include_thoughts": True},
        },
    }
    parts = Desk("gemini").told(path(), body)["candidates"][0]["content"]["parts"]
    assert [("thought" in part, "functionCall" in part) for part in parts] == [
        (True, False),
        (False, True),
    ]


REFUSED: list[tuple[Any, str]] = [
    ({"contents": []}, "contents is not specified"),
    ({"contents": [{"role": "user", "parts": []}]}, "contents.parts must not be empty"),
    ({"contents": [{"role": "robot", "parts": [{"text": "x"}]}]}, "Please use a valid role"),
    ({"contents": [{"role": "user", "parts": [{"thought": True}]}]}, "required oneof field 'data'"),
    ({"contents": [{"role": "user", "parts": [{"txt": "x"}]}]}, 'Unknown name "txt"'),
    ({"stream": True}, 'Unknown name "stream"'),
    ({"generationConfig": {"max_tokens": 1}}, "Unknown name \"maxTokens\" at 'generation_config'"),
    ({"generationConfig": {"temperature": 3}}, "temperature: must be between 0 and 2"),
    ({"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}, "only works in thinking mode"),
    ({"generationConfig": {"thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "low"}}}, "only one of"),
    ({"generationConfig": {"responseSchema": {}}}, "requires response_mime_type"),
    ({"toolConfig": {"functionCallingConfig": {"allowedFunctionNames": ["x"]}}}, "without ANY mode"),
    ({"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["x"]}}}, "not declared"),
    ({"contents": [user("q"), response("clock")]}, "number of function response parts"),
    ({"contents": [user("q"), model(call()), response("bell")]}, "number of function response parts"),
    ({"contents": [user("q"), model(call()), user("r")]}, "number of function response parts"),
    ({"contents": [user("q"), model(call()), response("")]}, "Name cannot be empty"),
    ({"contents": [user("q"), model(call()), response("clock")]}, "missing a thought_signature"),
    ({"contents": [user("q"), model(call(thoughtSignature="AAAA")), response("clock")]}, "not valid"),
    ({"contents": [user("q"), model({"text": "a", "thoughtSignature": "AAAA"}), user("r")]}, "not valid"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_what_gemini_refuses_is_refused(fields: Any, words: str) -> None:
    status, error = Desk("gemini").refused(path(), {**asked(), **fields})
    assert (status, error["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert words in error["error"]["message"]


def test_a_level_of_thinking_is_for_new_models() -> None:
    body = asked(generationConfig={"thinkingConfig": {"thinkingLevel": "low"}})
    assert Desk("gemini").ask(path(), body).status == 200
    assert Desk("gemini").ask(path(model="gemini-2.5-flash"), body).status == 400


SKIP = "skip_thought_signature_validator"
LOOPS: list[tuple[str, bool, Any, int]] = [
    (MODEL, False, [user("q"), model(call(thoughtSignature=SKIP)), response("clock")], 200),
    (MODEL, True, [user("q"), model(call(thoughtSignature=SKIP)), response("clock")], 400),
    ("gemini-2.5-flash", False, [user("q"), model(call()), response("clock")], 200),
    (MODEL, False, [user("q"), model(call()), response("clock"), model({"text": "a"}), user("r")], 200),
    (MODEL, True, [user("q"), user("r")], 400),
    (MODEL, False, [user("q"), user("r")], 200),
]  # fmt: skip


@pytest.mark.parametrize(("name", "strict", "contents", "status"), LOOPS)
def test_signatures_are_wanted_in_the_current_turn_of_new_models(
    name: str, contents: Any, status: int, *, strict: bool
) -> None:
    desk = Desk("gemini", strict=strict)
    assert desk.ask(path(model=name), {"contents": contents, "tools": [CLOCK]}).status == status


def test_three_rounds_go_by_with_each_first_call_signed() -> None:
    desk, contents = Desk("gemini"), [user("call clock rounds=3")]
    for _ in range(3):
        said = desk.told(path(), {"contents": contents, "tools": [CLOCK]})["candidates"][0][
            "content"
        ]
        assert said["parts"][0]["thoughtSignature"]
        contents += [said, response("clock")]
    last = desk.told(path(), {"contents": contents, "tools": [CLOCK]})["candidates"][0]
    assert last["content"]["parts"][0]["text"] == "The results are: noon"
    del contents[3]["parts"][0]["thoughtSignature"]
    assert desk.ask(path(), {"contents": contents, "tools": [CLOCK]}).status == 400


def test_counts_agree_with_the_usage() -> None:
    desk = Desk("gemini")
    usage = desk.told(path(), asked())["usageMetadata"]
    assert desk.told(path("countTokens"), asked())["totalTokens"] == usage["promptTokenCount"]
    inner = {"generateContentRequest": {"model": MODEL, **asked()}}
    assert desk.told(path("countTokens"), inner)["totalTokens"] == usage["promptTokenCount"]
    assert usage["totalTokenCount"] == (
        usage["promptTokenCount"] + usage["candidatesTokenCount"] + usage["thoughtsTokenCount"]
    )


def test_models_are_listed_in_the_form_of_each_door() -> None:
    desk = Desk("gemini")
    rows = desk.told("/v1beta/models")["models"]
    assert rows[1]["name"] == "models/gemini-3-flash"
    assert desk.told("/v1beta/models/gemini-3-flash") == rows[1]
    assert desk.told("/v1beta/openai/models")["data"][1]["id"] == "gemini-3-flash"
    assert desk.refused("/v1beta/models/none")[0] == 404
