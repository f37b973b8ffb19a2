"""Chat Completions of stand-ins: what each vendor streams otherwise, and what is refused."""

from typing import Any

import pytest

from support.providers.stand_ins import Desk, sse

PATH = "/v1/chat/completions"
FUNCTION = {
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
TOOLS: Any = [
    {"type": "function", "function": FUNCTION},
    {"type": "function", "function": {"name": "clock"}},
]
MODEL = "gpt-4.1-mini"


def user(text: Any) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


def chat(text: Any = "hello", **fields: Any) -> Any:
    return {"model": MODEL, **user(text), **fields}


def streamed(text: str, *quirks: str, model: str = "model-large", **fields: Any) -> list[Any]:
    desk = Desk("openai_like", quirks=quirks)
    body = chat(text, model=model, stream=True, **fields)
    return sse(desk.streamed(PATH, body))


def deltas(chunks: list[Any], key: str) -> list[Any]:
    return [
        choice["delta"][key]
        for chunk in chunks
        if chunk != "[DONE]"
        for choice in chunk["choices"]
        if key in choice["delta"]
    ]


def test_openai_tells_one_call_in_its_first_chunk_and_several_after_the_role() -> None:
    desk = Desk("openai")
    one = sse(desk.streamed(PATH, chat("call clock", tools=TOOLS, stream=True)))
    assert one[0]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "clock"
    several = sse(desk.streamed(PATH, chat("call all", tools=TOOLS, stream=True)))
    first = several[0]["choices"][0]["delta"]
    assert (first["role"], first["content"], "tool_calls" in first) == ("assistant", None, False)
    heads = [call for row in deltas(several, "tool_calls") for call in row if "id" in call]
    assert [(head["index"], head["function"]["name"]) for head in heads] == [
        (0, "weather"),
        (1, "clock"),
    ]
    assert one[-1] == several[-1] == "[DONE]"


def test_openai_pads_chunks_and_leaves_the_usage_null_until_the_end() -> None:
    options = {"include_usage": True}
    chunks = sse(Desk("openai").streamed(PATH, chat(stream=True, stream_options=options)))
    assert all("obfuscation" in chunk for chunk in chunks[:-2])
    assert [chunk["usage"] for chunk in chunks[:-2]] == [None] * (len(chunks) - 2)
    assert chunks[-2]["choices"] == []
    assert chunks[-2]["usage"]["completion_tokens"] == 4
    off = {"include_obfuscation": False}
    plain = sse(Desk("openai").streamed(PATH, chat(stream=True, stream_options=off)))
    assert not any("obfuscation" in chunk for chunk in plain[:-1])


def test_moderation_comes_after_the_usage() -> None:
    options = {"include_usage": True}
    desk = Desk("openai", quirks=("moderation",))
    *_, usage, moderation, done = sse(
        desk.streamed(PATH, chat(stream=True, stream_options=options))
    )
    assert usage["usage"]["total_tokens"] > 0
    assert (moderation["choices"], moderation["moderation"]["flagged"]) == ([], False)
    assert done == "[DONE]"


def test_groq_gives_each_chunk_an_id_and_the_usage_in_a_field_of_its_own() -> None:
    *chunks, done = streamed("hello", "groq")
    assert len({chunk["id"] for chunk in chunks}) == len(chunks)
    assert chunks[-1]["x_groq"]["usage"]["completion_tokens"] == 4
    assert done == "[DONE]"
    thinking = streamed("hello", "groq", model="model-thinking")
    assert "".join(deltas(thinking, "reasoning")) == "I think about: hello"


def test_deepseek_has_null_contents_and_the_usage_in_the_finishing_chunk() -> None:
    *chunks, _ = streamed("hello", "deepseek", model="model-thinking")
    contents = deltas(chunks, "content")
    assert contents[0] == ""
    assert contents[1:5] == [None] * 4
    assert "".join(deltas(chunks, "reasoning_content")) == "I think about: hello"
    last = chunks[-1]
    assert last["choices"][0]["finish_reason"] == "stop"
    usage = last["usage"]
    assert (
        usage["prompt_cache_hit_tokens"] + usage["prompt_cache_miss_tokens"]
        == usage["prompt_tokens"]
    )


def test_mistral_thinks_in_parts_and_counts_cached_tokens_at_the_top() -> None:
    *chunks, _ = streamed("hello", "mistral", model="model-thinking")
    parts = [content[0] for content in deltas(chunks, "content") if isinstance(content, list)]
    assert "".join(part["thinking"][0]["text"] for part in parts) == "I think about: hello"
    assert chunks[-1]["usage"]["num_cached_tokens"] == 0
    whole = Desk("openai_like", quirks=("mistral",)).told(PATH, chat(model="model-thinking"))
    content = whole["choices"][0]["message"]["content"]
    assert [part["type"] for part in content] == ["thinking", "text"]


def test_openrouter_comments_finishes_twice_and_signs_thoughts() -> None:
    desk = Desk("openai_like", quirks=("openrouter",))
    body = chat(model="model-thinking", stream=True)
    stream = desk.streamed(PATH, body)
    assert stream.startswith(b": OPENROUTER PROCESSING\n\n")
    chunks = sse(stream)[:-1]
    finishes = [chunk["choices"][0].get("finish_reason") for chunk in chunks]
    assert finishes[-2:] == ["stop", "stop"]
    assert (chunks[-1]["choices"][0]["native_finish_reason"], "usage" in chunks[-2]) == (
        "stop",
        False,
    )
    assert chunks[-1]["usage"]["completion_tokens"] == 8
    details = [row for rows in deltas(chunks, "reasoning_details") for row in rows]
    assert details[-1]["signature"]


def test_snowflake_never_finishes() -> None:
    *chunks, done = streamed("hello", "snowflake")
    assert not any("finish_reason" in chunk["choices"][0] for chunk in chunks)
    assert done == "[DONE]"
    whole = Desk("openai_like", quirks=("snowflake",)).told(PATH, chat(model="model-large"))
    assert "finish_reason" not in whole["choices"][0]


def test_azure_tells_filter_results_before_anything_else() -> None:
    first, second, *_ = sse(
        Desk("azure").streamed("/openai/v1/chat/completions", chat(stream=True))
    )
    assert {key: first[key] for key in ("id", "object", "created", "model", "choices")} == {
        "id": "",
        "object": "",
        "created": 0,
        "model": "",
        "choices": [],
    }
    assert second["choices"][0]["content_filter_results"] == {}


def test_mantle_counts_the_calls_of_each_answer() -> None:
    body = chat("call all", model="openai.gpt-oss-120b", tools=TOOLS)
    whole = Desk("mantle").told("/openai/v1/chat/completions", body)
    ids = [call["id"] for call in whole["choices"][0]["message"]["tool_calls"]]
    assert ids == ["call_0", "call_1"]


def test_the_openai_door_of_gemini_has_calls_without_ids_and_wants_signatures_back() -> None:
    desk, path = Desk("gemini"), "/v1beta/openai/chat/completions"
    asked = chat("call weather city=Paris", model="gemini-3-flash", tools=TOOLS)
    [call] = desk.told(path, asked)["choices"][0]["message"]["tool_calls"]
    assert call["id"] == ""
    assert call["extra_content"]["google"]["thought_signature"]
    turns = [*asked["messages"], {"role": "assistant", "tool_calls": [call]}]
    turns.append({"role": "tool", "tool_call_id": "", "content": "sunny"})
    after = desk.told(path, {**asked, "messages": turns})
    assert after["choices"][0]["message"]["content"] == "The results are: sunny"
    del call["extra_content"]
    status, error = desk.refused(path, {**asked, "messages": turns})
    assert status == 400
    assert "missing a thought_signature" in error["error"]["message"]


def test_choices_are_counted_and_billed_each() -> None:
    desk = Desk("openai")
    whole = desk.told(PATH, chat(n=3, logprobs=True))
    assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2]
    assert len(whole["choices"][0]["logprobs"]["content"]) == 4
    assert whole["usage"]["completion_tokens"] == 12
    assert desk.vendor.bill.told()["rows"][0]["answer_tokens"] == 12


def tool(name: str, text: str = "r") -> Any:
    return {"role": "tool", "tool_call_id": name, "content": text}


def calls(*names: str) -> Any:
    made = [
        {"id": name, "type": "function", "function": {"name": "clock", "arguments": "{}"}}
        for name in names
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


QUESTION: Any = {"role": "user", "content": "q"}
REFUSED: list[tuple[Any, str]] = [
    ({"messages": []}, "Missing required parameter: 'messages'"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "Invalid value: 'robot'"),
    ({"messages": [{"role": "user", "content": None}]}, "expected a string, got null"),
    ({"messages": [QUESTION, tool("a")]}, "must be a response to a preceeding message"),
    ({"messages": [QUESTION, calls("a", "b"), tool("a")]}, "did not have response messages: b"),
    ({"messages": [QUESTION, calls("a"), QUESTION]}, "did not have response messages: a"),
    ({"messages": [QUESTION, calls("a"), tool("a"), tool("a")]}, "must be a response"),
    ({"top_k": 1}, "Unrecognized request argument supplied: top_k"),
    ({"stream_options": {"include_usage": True}}, "only allowed when 'stream' is enabled"),
    ({"n": 9}, "integer out of range"),
    ({"temperature": 3}, "temperature: must be between 0 and 2"),
    ({"max_tokens": 0}, "max_tokens: must be between 1"),
    ({"max_tokens": "5"}, "should be a valid int"),
    ({"tool_choice": "auto"}, "only allowed when 'tools' are specified"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "x"}}}, "'x' not found"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "should match pattern"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "array too long"),
    ({"messages": [{"role": "assistant", "tool_calls": 5}]}, "valid list of objects"),
    ({"messages": [{"role": "assistant", "content": 5}]}, "valid list of objects"),
    ({"tools": [{"type": "function", "function": {"name": "a", "parameters": 5}}]}, "tools[0].function.parameters"),
    ({"tools": [{"type": "function", "function": 5}]}, "Invalid value for 'tools[0]'"),
    ({"tools": TOOLS, "tool_choice": {"function": 5}}, "a field has a wrong type"),
    ({"stream_options": 5, "stream": True}, "stream_options: Input should be a valid dict"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_what_openai_refuses_is_refused(fields: Any, words: str) -> None:
    status, error = Desk("openai").refused(PATH, chat(**fields))
    assert status == 400
    assert words in error["error"]["message"]


def test_images_and_system_turns_are_facts() -> None:
    parts = [
        {"type": "text", "text": "what"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    messages = [{"role": "developer", "content": "be kind"}, {"role": "user", "content": parts}]
    whole = Desk("openai").told(PATH, {"model": MODEL, "messages": messages})
    said = whole["choices"][0]["message"]["content"]
    assert said == "You said: what (turns=1 system=7 images=1)"
