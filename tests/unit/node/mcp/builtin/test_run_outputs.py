"""Outputs of code and pictures: from content and from JSON, whatever a server calls them."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.builtin.run_outputs import PICTURES_MAX, code_outputs, pictures_in, size_of
from smg_node.mcp.tools.tool_result import CallResult

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 12_000).decode()
DATA = f"data:image/png;base64,{PNG}"
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def outputs(*content: Any, value: Any = None) -> list[Any]:
    structured = b"" if value is None else json.dumps(value).encode()
    return list(code_outputs(CallResult(content, structured), bytes_max=1_000))


@pytest.mark.parametrize(
    ("value", "logs"),
    [
        ({"stdout": "4\n", "stderr": ""}, "4\n"),
        ({"stdout": "4", "stderr": "careful"}, "4\ncareful"),
        ({"output": ["1", "2"], "status": "success"}, "1\n2"),
        ({"result": 4}, "4"),
        ({"result": "4"}, "4"),
        ({"outputs": [{"type": "logs", "logs": "4"}]}, "4"),
        ({"outputs": ["1", "2"]}, "1\n2"),
        ({"stdout": "", "error": "ZeroDivisionError"}, "ZeroDivisionError"),
    ],
)
def test_what_code_printed_by_any_name(value: Any, logs: str) -> None:
    assert outputs(value=value) == [{"type": "logs", "logs": logs}]
    # The same thing a second time as content is not told again.
    assert outputs(text(json.dumps(value)), value=value) == [{"type": "logs", "logs": logs}]


def test_content_is_what_was_printed_and_drawn() -> None:
    assert outputs(text("a"), IMAGE, text("b")) == [
        {"type": "logs", "logs": "a\nb"},
        {"type": "image", "url": DATA},
    ]
    inside = {"type": "resource", "resource": {"uri": "u", "text": "inside"}}
    assert outputs(inside) == [{"type": "logs", "logs": "inside"}]
    assert outputs() == outputs(text("")) == []


def test_json_in_no_known_form_is_shown_as_it_is() -> None:
    assert outputs(value={"exit": 0}) == [{"type": "logs", "logs": '{"exit": 0}'}]


def test_logs_are_cut() -> None:
    (logs,) = outputs(text("line\n" * 10_000))
    assert len(logs["logs"]) < 1_100
    assert "bytes left out" in logs["logs"]


@pytest.mark.parametrize(
    "value",
    [
        {"data": [{"b64_json": PNG, "revised_prompt": "a cat"}]},
        {"images": [{"data": PNG, "mime_type": "image/png"}]},
        {"images": [DATA]},
        {"image": DATA},
        {"outputs": [{"type": "image", "url": DATA}]},
        [{"url": DATA}],
    ],
)
def test_pictures_by_any_name(value: Any) -> None:
    spelled = json.dumps(value)
    assert pictures_in(CallResult((), spelled.encode())) == [{"type": "image", "url": DATA}]
    assert pictures_in(CallResult((text(spelled),))) == [{"type": "image", "url": DATA}]


def test_pictures_with_an_address() -> None:
    link = {"type": "resource_link", "uri": "https://a.org/1.png", "mimeType": "image/png"}
    shown = [{"type": "image", "url": "https://a.org/1.png"}]
    assert pictures_in(CallResult((link,))) == shown
    assert pictures_in(CallResult((), b'{"data":[{"url":"https://a.org/1.png"}]}')) == shown


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "not base64!", "mimeType": "image/png"},
        {"type": "image", "data": PNG, "mimeType": "text/html"},
        {"type": "image", "data": PNG, "mimeType": 'image/png"><script>'},
        {"type": "image", "mimeType": "image/png"},
        {"type": "image", "data": 3},
        {"type": "resource_link", "uri": "javascript:alert(1)", "mimeType": "image/png"},
        {"type": "text", "text": '{"url": "data:text/html;base64,AAAA"}'},
    ],
)
def test_what_is_no_picture(block: Any) -> None:
    assert pictures_in(CallResult((block,))) == []


def test_a_picture_is_told_once_and_so_many_at_most() -> None:
    assert pictures_in(CallResult((IMAGE, IMAGE))) == [{"type": "image", "url": DATA}]
    many = [
        {"type": "image", "data": base64.b64encode(bytes([n])).decode(), "mimeType": "image/png"}
        for n in range(100)
    ]
    assert len(pictures_in(CallResult(tuple(many)))) == PICTURES_MAX


def test_a_picture_in_words() -> None:
    assert size_of({"type": "image", "url": DATA}) == "image/png, 12 kB"
    assert size_of({"type": "image", "url": "data:image/png;base64,AAAA"}) == "image/png, 3 B"
    assert size_of({"type": "image", "url": "https://a.org/1.png"}) == "https://a.org/1.png"


_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20) | st.just(DATA),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["outputs", "stdout", "result", "data", "images", "url", "b64_json"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(_VALUES)
def test_any_json_has_outputs_or_none(value: Any) -> None:
    for output in outputs(value=value):
        assert output["type"] in ("logs", "image")
