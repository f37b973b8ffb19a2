import base64
import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.providers import hosting
from smg_node.providers.hosting import HOSTINGS, Dress
from smg_node.providers.wire.answer_undressing import AnswerUndressing
from smg_node.providers.wire.dressing import Dressed, dress_native, dress_written
from smg_node.providers.wire.json_members import members

VERSION: Final = "2026-10-21"


def dress_of(kind: str, operation: str) -> Dress:
    return HOSTINGS[kind].routes[operation].dress


def native(
    kind: str, operation: str, body: bytes, *, streamed: bool = True, betas: tuple[str, ...] = ()
) -> Dressed:
    dress = dress_of(kind, operation)
    return dress_native(body, dress, model='m"1', streamed=streamed, version=VERSION, betas=betas)


@pytest.mark.parametrize(
    ("kind", "operation", "body", "out"),
    [
        (
            "openai",
            hosting.RESPONSES,
            b'{ "model" : "a", "input":"\\u0068i", "top_p":1.0 ,"x":{"model":"a"} }\n',
            b'{ "model" : "m\\"1", "input":"\\u0068i", "top_p":1.0 ,"x":{"model":"a"} }\n',
        ),
        ("anthropic", hosting.MESSAGES, b'{"mod\\u0065l":1}', b'{"mod\\u0065l":"m\\"1"}'),
        ("anthropic", hosting.MESSAGES, b'{"a":1}', b'{"model":"m\\"1","a":1}'),
        ("gemini", hosting.GENERATE_CONTENT, b'{"contents":[]}', b'{"contents":[]}'),
        ("gemini", hosting.INTERACTIONS, b'{"model":"a"}', b'{"model":"m\\"1"}'),
        (
            "vertex_anthropic",
            hosting.MESSAGES,
            b'{"model":"a","stream":true,"max_tokens":5}',
            b'{"anthropic_version":"2026-10-21","stream":true,"max_tokens":5}',
        ),
        (
            "bedrock_invoke",
            hosting.MESSAGES,
            b'{"model":"a","stream":true,"anthropic_version":"bedrock-2023-05-31"}',
            b'{"anthropic_version":"bedrock-2023-05-31"}',
        ),
        (
            "bedrock_invoke",
            hosting.MESSAGES,
            b'{"max_tokens":5,"model":"a","stream":true}',
            b'{"anthropic_version":"2026-10-21","anthropic_beta":["b1","b2"],"max_tokens":5}',
        ),
        (
            "bedrock",
            hosting.CONVERSE,
            b'{"messages":[],"stream":true}',
            b'{"messages":[]}',
        ),
    ],
)
def test_a_body_is_changed_only_where_its_hosting_wants_it(
    kind: str, operation: str, body: bytes, out: bytes
) -> None:
    betas = ("b1", "b2") if b"max_tokens" in body else ()
    assert native(kind, operation, body, betas=betas) == Dressed(out)


def test_counting_at_bedrock_wraps_what_could_be_sent() -> None:
    body = native("bedrock_invoke", hosting.COUNT_MESSAGES, b'{"model":"a","messages":[]}').body
    inner = json.loads(body)["input"]["invokeModel"]["body"]
    assert base64.b64decode(inner) == (
        b'{"anthropic_version":"2026-10-21","max_tokens":1,"messages":[]}'
    )


@pytest.mark.parametrize(
    ("body", "streamed", "out", "added"),
    [
        (b'{"model":1}', False, b'{"model":"m\\"1"}', False),
        (
            b'{"model":1}',
            True,
            b'{"stream_options":{"include_usage":true},"model":"m\\"1"}',
            True,
        ),
        (
            b'{"model":1,"stream_options":null}',
            True,
            b'{"model":"m\\"1","stream_options":{"include_usage":true}}',
            True,
        ),
        (
            b'{"model":1,"stream_options":{ "x":1.0, "include_usage" : false }}',
            True,
            b'{"model":"m\\"1","stream_options":{ "x":1.0, "include_usage" : true }}',
            True,
        ),
        (
            b'{"model":1,"stream_options":{"include_obfuscation":false}}',
            True,
            b'{"model":"m\\"1","stream_options":{"include_usage":true,"include_obfuscation":false}}',
            True,
        ),
        (
            b'{"model":1,"stream_options":{"include_usage":true}}',
            True,
            b'{"model":"m\\"1","stream_options":{"include_usage":true}}',
            False,
        ),
    ],
)
def test_the_usage_of_a_stream_is_asked_for(
    body: bytes, streamed: bool, out: bytes, added: bool
) -> None:
    assert native("openai", hosting.CHAT, body, streamed=streamed) == Dressed(out, added)


def test_a_body_that_is_no_object_is_refused() -> None:
    with pytest.raises(SmgError) as caught:
        native("openai", hosting.CHAT, b"[1]")
    assert caught.value.code == "invalid_json"


DRESSES: Final = [
    (kind, operation)
    for kind, row in HOSTINGS.items()
    for operation in row.routes
    if not row.routes[operation].dress.counted
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["model", "stream", "a"]), inner)
    ),
    max_leaves=6,
)


@given(
    st.sampled_from(DRESSES),
    st.dictionaries(st.sampled_from(["model", "messages", "stream", "a", "b c", "я"]), VALUES),
    st.booleans(),
    st.sampled_from([None, 1, 4]),
)
def test_every_member_but_the_dress_keeps_its_bytes_and_its_place(
    place: tuple[str, str], said: dict[str, Any], streamed: bool, indent: int | None
) -> None:
    body = json.dumps(said, indent=indent, ensure_ascii=False).encode()
    out = native(*place, body, streamed=streamed).body
    touched = {"model", "stream", "stream_options", "anthropic_version"}
    before = [body[m.start : m.end] for m in members(body) if m.key not in touched]
    after = [out[m.start : m.end] for m in members(out) if m.key not in touched]
    assert after == before
    assert ("stream" in json.loads(out)) == (dress_of(*place).stream and "stream" in said)
    assert json.loads(out).get("model") == ('m"1' if dress_of(*place).model else None)


def test_a_megabyte_keeps_every_byte() -> None:
    text = json.dumps("д" * 300_000 + '\\"model": "x"' * 9_000)
    rows = json.dumps([{"role": "user", "n": at, "model": "a"} for at in range(9_000)])
    head = b'{"model":"a","text":' + text.encode() + b',"rows":' + rows.encode() + b',"z":1e5}'
    assert len(head) > 1_000_000
    out = native("anthropic", hosting.MESSAGES, head).body
    assert out == head.replace(b'{"model":"a"', b'{"model":"m\\"1"', 1)


def test_written_fields_are_dressed_by_the_same_rules() -> None:
    fields = {"model": "x", "stream": True, "messages": [], "max_tokens": 5}
    written = {
        (kind, operation): json.loads(
            dress_written(
                fields, dress_of(kind, operation), model="m", version=VERSION, betas=("b",)
            ).body
        )
        for kind, operation in [
            ("openai", hosting.CHAT),
            ("anthropic", hosting.MESSAGES),
            ("vertex_anthropic", hosting.MESSAGES),
            ("bedrock_invoke", hosting.MESSAGES),
            ("bedrock", hosting.CONVERSE),
        ]
    }
    rest = {"messages": [], "max_tokens": 5}
    assert written == {
        ("openai", "chat"): {
            **rest,
            "model": "m",
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        ("anthropic", "messages"): {**rest, "model": "m", "stream": True},
        ("vertex_anthropic", "messages"): {
            **rest,
            "stream": True,
            "anthropic_version": VERSION,
        },
        ("bedrock_invoke", "messages"): {
            **rest,
            "anthropic_version": VERSION,
            "anthropic_beta": ["b"],
        },
        ("bedrock", "converse"): rest,
    }
    assert fields["stream"] is True


@pytest.mark.parametrize(
    ("dialect", "data", "out"),
    [
        (
            hosting.CHAT,
            b'{"id":"1","model":"v-1","choices":[]}',
            b'{"id":"1","model":"n","choices":[]}',
        ),
        (hosting.CHAT, b'{"a":{"model":"v-1"}}', b'{"a":{"model":"v-1"}}'),
        (hosting.CHAT, b'{"model":null}', b'{"model":null}'),
        (hosting.CHAT, b"[DONE]", b"[DONE]"),
        (hosting.CHAT, b'{"model":"v', b'{"model":"v'),
        (
            hosting.RESPONSES,
            b'{"type":"response.created","response":{"id":"r","model":"v"}}',
            b'{"type":"response.created","response":{"id":"r","model":"n"}}',
        ),
        (hosting.RESPONSES, b'{"id":"r","model":"v"}', b'{"id":"r","model":"n"}'),
        (
            hosting.MESSAGES,
            b'{"type":"message_start","message":{ "model" : "v" }}',
            b'{"type":"message_start","message":{ "model" : "n" }}',
        ),
        (
            hosting.MESSAGES,
            b'{"content":[{"input":{"model":"v"}}]}',
            b'{"content":[{"input":{"model":"v"}}]}',
        ),
        (hosting.GENERATE_CONTENT, b'{"modelVersion":"v"}', b'{"modelVersion":"n"}'),
        (hosting.CONVERSE, b'{"model":"v"}', b'{"model":"v"}'),
    ],
)
def test_an_answer_gets_the_clients_name_where_it_names_a_model(
    dialect: str, data: bytes, out: bytes
) -> None:
    undressing = AnswerUndressing(dialect, "n")
    assert undressing.event(data) == out
    assert undressing.event(data) == out
    assert AnswerUndressing(dialect, "").event(data) == data


def test_events_that_begin_alike_are_renamed_alike() -> None:
    undressing = AnswerUndressing(hosting.CHAT, "n")
    events = [b'{"id":"%d","model":"v-%d","x":%d}' % (at // 3, at // 4, at) for at in range(12)]
    renamed = [undressing.event(event) for event in events]
    assert renamed == [b'{"id":"%d","model":"n","x":%d}' % (at // 3, at) for at in range(12)]


@pytest.mark.parametrize(
    ("data", "out"),
    [
        (b'{"choices":[{"a":1}],"usage":null}', b'{"choices":[{"a":1}]}'),
        (b'{"choices":[{"a":1}],"usage":null,"o":"x"}', b'{"choices":[{"a":1}],"o":"x"}'),
        (
            b'{"choices":[{"a":{"x":1,"usage":null,"o":"x"}}]}',
            b'{"choices":[{"a":{"x":1,"usage":null,"o":"x"}}]}',
        ),
        (b'{"usage": null ,"choices":[{}]}', b'{"choices":[{}]}'),
        (b'{"choices":[],"usage":{"total_tokens":3}}', None),
        (b'{"choices":[{"a":1}],"usage":{"t":3}}', b'{"choices":[{"a":1}],"usage":{"t":3}}'),
        (b'{"choices":[],"x_y":1}', b'{"choices":[],"x_y":1}'),
        (
            b'{"choices":[],"moderation":{},"usage":{}}',
            b'{"choices":[],"moderation":{},"usage":{}}',
        ),
        (b'{"usage":', b'{"usage":'),
    ],
)
def test_a_usage_that_nobody_asked_for_is_withheld(data: bytes, out: bytes | None) -> None:
    assert AnswerUndressing(hosting.CHAT, "", withhold_usage=True).event(data) == out
    assert AnswerUndressing(hosting.CHAT, "").event(data) == data


@given(st.binary(max_size=50), st.sampled_from([hosting.CHAT, hosting.RESPONSES]))
def test_garbage_passes_as_it_is(data: bytes, dialect: str) -> None:
    undressing = AnswerUndressing(dialect, "n", withhold_usage=True)
    assert undressing.event(b'{"model":"v","usage":' + data[:1] + data) is not None
    assert AnswerUndressing(dialect, "n").whole(data) == data
