"""What workers say of a failure, in all the forms they say it, comes to words, a code and a place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.dialects.worker_errors import WORDS_MAX_BYTES, WorkerError, error_of, refusal_of

JSON = "application/json"
PAGE = b"<html><head><title>413 Request  Entity\nToo Large</title></head><body>nginx</body></html>"
MISTAKES = [
    {"loc": ["body", "messages", 2, "content"], "msg": "Field required", "type": "missing"},
    {"loc": ["query", "n"], "msg": "must be a number"},
    {"msg": "odd"},
]
LISTED = "messages[2].content: Field required; n: must be a number; odd"


def parts(said: WorkerError) -> tuple[int, str, str, str]:
    return said.status, said.message, said.code, said.param


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            {"error": {"message": "n is odd", "code": "bad_n", "param": "n"}},
            (0, "n is odd", "bad_n", "n"),
        ),
        ({"error": {"message": "odd", "code": 400, "type": "x"}}, (400, "odd", "", "")),
        ({"error": {"message": "odd", "code": "429"}}, (429, "odd", "", "")),
        ({"error": {"message": "odd", "code": "a b", "param": "a b"}}, (0, "odd", "", "")),
        ({"error": {"message": {"why": 1}}}, (0, '{"why":1}', "", "")),
        ({"error": {"detail": "odd"}}, (0, "odd", "", "")),
        ({"error": "text"}, (0, "text", "", "")),
        ({"object": "error", "message": "flat", "code": 400, "param": None}, (400, "flat", "", "")),
        ({"detail": "odd"}, (0, "odd", "", "")),
        ({"detail": MISTAKES}, (0, LISTED, "", "messages[2].content")),
        ({"error": {"message": MISTAKES}}, (0, LISTED, "", "messages[2].content")),
        ({"detail": [{"loc": "x", "msg": 5}]}, (0, '{"loc":"x","msg":5}', "", "")),
        ({"error": {}}, None),
        ({"error": None, "choices": []}, None),
        ({"detail": "odd", "choices": []}, None),
        ({"detail": ""}, None),
        ([1], None),
        ("error", None),
    ],
)
def test_an_error_is_known_in_every_form(
    body: object, told: tuple[int, str, str, str] | None
) -> None:
    said = error_of(body)
    assert (None if said is None else parts(said)) == told


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b'{"message":"odd","status":400}', JSON, "odd"),
        (b'{"errors":["a","b"]}', JSON, '["a","b"]'),
        (b'[{"error":{"message":"listed"}}]', JSON, "listed"),
        (b'"just text"', JSON, "just text"),
        (b"plain words \n", "text/plain; charset=utf-8", "plain words"),
        (b"plain words", "", "plain words"),
        (b"\xff\xfe", "text/plain", "\ufffd\ufffd"),
        (b"\x00\x01binary", "application/octet-stream", ""),
        (PAGE, "text/html", "413 Request Entity Too Large"),
        (b"  <!DOCTYPE html><p>no title</p>", "text/plain", ""),
        (b"{}", JSON, ""),
        (b"7", JSON, ""),
        (b"", JSON, ""),
        (b"[" * 5_000, JSON, ""),
    ],
)
def test_a_refusal_of_any_form_keeps_its_words(body: bytes, kind: str, words: str) -> None:
    assert refusal_of(body, kind).message == words


def test_words_are_cut_and_accounts_are_hidden() -> None:
    said = refusal_of(json.dumps({"error": {"message": "ü" * 5_000}}).encode(), JSON)
    assert len(said.message.encode()) <= WORDS_MAX_BYTES
    assert said.message.endswith("ü…")
    told = {"error": {"message": "limit of org-A1b2C3d4E5 in proj_99887766; organic stays"}}
    shown = refusal_of(json.dumps(told).encode(), JSON).message
    assert shown == "limit of [an account] in [an account]; organic stays"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 600) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "detail", "code", "param", "loc", "msg", "object"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(VALUES)
def test_any_value_is_some_refusal_that_fits_an_answer(value: object) -> None:
    said = refusal_of(json.dumps(value).encode(), JSON)
    assert len(said.message.encode()) <= WORDS_MAX_BYTES
    assert len(said.code) <= 64
    assert len(said.param) <= 128


@given(st.binary(max_size=60), st.sampled_from([JSON, "", "text/plain", "text/html"]))
def test_any_bytes_are_some_refusal(body: bytes, kind: str) -> None:
    assert len(refusal_of(body, kind).message.encode()) <= WORDS_MAX_BYTES
