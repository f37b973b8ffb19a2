"""Messages to turns: roles, content, calls, and where each mistake is."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, MediaPart, TextPart, ToolCall, Turn
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}


def turns(*messages: Any, options: ReaderOptions | None = None) -> tuple[Turn, ...]:
    return read(*messages, options=options)[0]


def read(
    *messages: Any, options: ReaderOptions | None = None
) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
    dialect = ChatDialect(options or ReaderOptions())
    request = dialect.read({"model": "m", "messages": list(messages)}).request
    (prompt,) = request.prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt.turns, request.ignored


def refusal(*messages: Any, options: ReaderOptions | None = None) -> SmgError:
    with pytest.raises(SmgError) as caught:
        turns(*messages, options=options)
    return caught.value


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
def test_a_role_and_a_string_are_a_turn(role: Any) -> None:
    assert turns({"role": role, "content": "hi"}) == (Turn(role, "hi"),)
    assert turns({"content": "", "role": role}) == (Turn(role, ""),)


@pytest.mark.parametrize(
    ("message", "turn"),
    [
        ({"role": "user", "content": "hi", "name": "ann"}, Turn("user", "hi", name="ann")),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": ""}],
            },
            Turn("user", (TextPart("a"), TextPart(""))),
        ),
        (
            {"role": "user", "content": "hi", "weight": 0.5, "none": None},
            Turn("user", "hi", extra={"weight": 0.5}),
        ),
        (
            {"role": "tool", "content": "4", "tool_call_id": "c1"},
            Turn("tool", "4", answers_call="c1"),
        ),
        ({"role": "function", "content": "4", "name": "f"}, Turn("function", "4", name="f")),
        ({"role": "function", "content": None, "name": "f"}, Turn("function", None, name="f")),
        (
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            Turn("assistant", None, calls=(ToolCall("c1", "f", "{}"),)),
        ),
        (
            {"role": "assistant", "tool_calls": [CALL]},
            Turn("assistant", None, calls=(ToolCall("c1", "f", "{}"),)),
        ),
        ({"role": "assistant", "content": "x", "tool_calls": []}, Turn("assistant", "x")),
        (
            {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}},
            Turn("assistant", "", calls=(ToolCall("", "f", "{}"),)),
        ),
        (
            {"role": "assistant", "content": "x", "reasoning_content": "a", "reasoning": "b"},
            Turn("assistant", "x", reasoning="a"),
        ),
        (
            {"role": "assistant", "content": None, "reasoning": "b"},
            Turn("assistant", None, reasoning="b"),
        ),
        ({"role": "assistant", "content": None, "refusal": "no"}, Turn("assistant", "no")),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            Turn("assistant", (TextPart("no"),)),
        ),
    ],
)
def test_a_message_becomes_a_turn(message: dict[str, Any], turn: Turn) -> None:
    assert turns(message) == (turn,)


@pytest.mark.parametrize(
    ("arguments", "text"), [('{"a": 1}', '{"a": 1}'), ({"a": 1}, '{"a":1}'), (None, ""), ("{", "{")]
)
def test_arguments_keep_the_text_the_model_printed(arguments: Any, text: str) -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    (turn,) = turns({"role": "assistant", "content": "", "tool_calls": [call]})
    assert turn.calls == (ToolCall("c", "f", text),)


@pytest.mark.parametrize(
    ("part", "kind", "source", "where"),
    [
        (PNG, "image", "data:image/png;base64,AA", "image_url"),
        ({"type": "image_url", "image_url": "http://a/b"}, "image", "http://a/b", "image_url"),
        ({"type": "video_url", "video_url": {"url": "u"}}, "video", "u", "video_url"),
        ({"type": "audio_url", "audio_url": {"url": "u"}}, "audio", "u", "audio_url"),
        (
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            "audio",
            "data:audio/wav;base64,AA",
            "input_audio",
        ),
        ({"type": "file", "file": {"file_data": "d"}}, "file", "d", "file"),
    ],
)
def test_media_parts_keep_their_source_and_path(
    part: dict[str, Any], kind: Any, source: str, where: str
) -> None:
    (turn,) = turns({"role": "user", "content": [{"type": "text", "text": "look"}, part]})
    media = MediaPart(kind, source, f"messages[0].content[1].{where}")
    assert turn.content == (TextPart("look"), media)


@pytest.mark.parametrize("detail", ["auto", "low", "high", "original"])
def test_a_picture_keeps_its_detail_and_the_name_that_the_client_gave_it(detail: Any) -> None:
    part = {"type": "image_url", "image_url": {"url": "u", "detail": detail}, "uuid": "mine"}
    (turn,), ignored = read({"role": "user", "content": [part]})
    assert turn.content == (
        MediaPart("image", "u", "messages[0].content[0].image_url", detail, "mine"),
    )
    assert ignored == ()


def test_nulls_say_nothing_about_a_picture() -> None:
    part = {"type": "image_url", "image_url": {"url": "u", "detail": None}, "uuid": None}
    (turn,) = turns({"role": "user", "content": [part]})
    assert turn.content == (MediaPart("image", "u", "messages[0].content[0].image_url"),)


def test_only_pictures_have_a_detail() -> None:
    part = {"type": "video_url", "video_url": {"url": "u", "detail": "low"}}
    _, ignored = read({"role": "user", "content": [part]})
    assert ignored == ("messages[0].content[0].video_url.detail",)


@pytest.mark.parametrize(
    ("part", "kind", "source"),
    [
        ({"type": "video_url", "video_url": {"url": "u"}}, "video", "u"),
        ({"type": "audio_url", "audio_url": {"url": "u"}}, "audio", "u"),
        (
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "mp3"}},
            "audio",
            "data:audio/mp3;base64,AA",
        ),
        ({"type": "file", "file": {"file_data": "d"}}, "file", "d"),
    ],
)
def test_every_medium_may_have_a_name_of_the_clients_own(
    part: dict[str, Any], kind: Any, source: str
) -> None:
    (turn,), ignored = read({"role": "user", "content": [{**part, "uuid": "mine"}]})
    where = f"messages[0].content[0].{part['type']}"
    assert turn.content == (MediaPart(kind, source, where, uuid="mine"),)
    assert ignored == ()


def test_a_file_keeps_its_name() -> None:
    part = {"type": "file", "file": {"file_data": "d", "filename": "notes.txt"}}
    (turn,), ignored = read({"role": "user", "content": [part]})
    assert turn.content == (
        MediaPart("file", "d", "messages[0].content[0].file", name="notes.txt"),
    )
    assert ignored == ()


USER = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("message", "where", "code"),
    [
        ("hi", "messages[1]", "invalid_type"),
        ({"content": "x"}, "messages[1].role", "missing_required_parameter"),
        ({"role": "robot", "content": "x"}, "messages[1].role", "invalid_value"),
        ({"role": ["user"], "content": "x"}, "messages[1].role", "invalid_type"),
        ({"role": "user"}, "messages[1].content", "missing_required_parameter"),
        ({"role": "user", "content": None}, "messages[1].content", "missing_required_parameter"),
        (
            {"role": "assistant", "content": None},
            "messages[1].content",
            "missing_required_parameter",
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": []},
            "messages[1].content",
            "missing_required_parameter",
        ),
        ({"role": "user", "content": 1}, "messages[1].content", "invalid_type"),
        ({"role": "user", "content": []}, "messages[1].content", "invalid_value"),
        ({"role": "user", "content": ["x"]}, "messages[1].content[0]", "invalid_type"),
        (
            {"role": "user", "content": [{"text": "x"}]},
            "messages[1].content[0].type",
            "missing_required_parameter",
        ),
        (
            {"role": "user", "content": [{"type": "smell"}]},
            "messages[1].content[0].type",
            "invalid_value",
        ),
        (
            {"role": "user", "content": [{"type": "text", "text": 1}]},
            "messages[1].content[0].text",
            "invalid_type",
        ),
        (
            {"role": "user", "content": [{"type": "image_url"}]},
            "messages[1].content[0].image_url",
            "missing_required_parameter",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]},
            "messages[1].content[0].image_url.url",
            "invalid_value",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": ""}]},
            "messages[1].content[0].image_url",
            "invalid_value",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "u", "detail": "closely"}}],
            },
            "messages[1].content[0].image_url.detail",
            "invalid_value",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "u", "detail": 1}}],
            },
            "messages[1].content[0].image_url.detail",
            "invalid_type",
        ),
        (
            {"role": "user", "content": [PNG | {"uuid": "u" * 257}]},
            "messages[1].content[0].uuid",
            "invalid_value",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "uuid": "mine"}]},
            "messages[1].content[0].image_url",
            "missing_required_parameter",
        ),
        ({"role": "system", "content": [PNG]}, "messages[1].content[0].type", "invalid_value"),
        (
            {"role": "user", "content": [{"type": "refusal", "refusal": "x"}]},
            "messages[1].content[0].type",
            "invalid_value",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": "A", "format": "a/b"}}],
            },
            "messages[1].content[0].input_audio.format",
            "invalid_value",
        ),
        (
            {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]},
            "messages[1].content[0].file.file_id",
            "unsupported_parameter",
        ),
        ({"role": "user", "content": "x", "name": ""}, "messages[1].name", "invalid_value"),
        ({"role": "function", "content": "x"}, "messages[1].name", "missing_required_parameter"),
        (
            {"role": "tool", "content": "x"},
            "messages[1].tool_call_id",
            "missing_required_parameter",
        ),
        (
            {"role": "tool", "content": "x", "tool_call_id": 1},
            "messages[1].tool_call_id",
            "invalid_type",
        ),
        (
            {"role": "assistant", "content": "", "reasoning_content": 1},
            "messages[1].reasoning_content",
            "invalid_type",
        ),
        (
            {"role": "assistant", "content": "", "audio": {"id": "a"}},
            "messages[1].audio",
            "unsupported_parameter",
        ),
        (
            {"role": "assistant", "content": "", "tool_calls": {}},
            "messages[1].tool_calls",
            "invalid_type",
        ),
        (
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]},
            "messages[1].tool_calls[0].id",
            "missing_required_parameter",
        ),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [CALL, {"id": "x", "type": "shell"}],
            },
            "messages[1].tool_calls[1].type",
            "unsupported_parameter",
        ),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "x", "function": {"name": ""}}],
            },
            "messages[1].tool_calls[0].function.name",
            "invalid_value",
        ),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": 1}}],
            },
            "messages[1].tool_calls[0].function.arguments",
            "invalid_type",
        ),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [CALL],
                "function_call": {"name": "f"},
            },
            "messages[1].function_call",
            "invalid_value",
        ),
    ],
)
def test_a_mistake_in_a_message_has_a_path(message: Any, where: str, code: str) -> None:
    error = refusal(USER, message)
    assert (error.where, error.code) == (where, code)


def test_messages_parts_and_media_are_limited() -> None:
    options = ReaderOptions(messages_max=3, parts_max=4, images_max=1)
    two = {"role": "user", "content": [{"type": "text", "text": "a"}] * 2}
    assert len(turns(two, two, USER, options=options)) == 3
    assert refusal(USER, USER, USER, USER, options=options).where == "messages"
    assert refusal(two, two, two, options=options).where == "messages[2].content"
    images = {"role": "user", "content": [PNG, PNG]}
    assert refusal(images, options=options).where == "messages[0].content[1]"
