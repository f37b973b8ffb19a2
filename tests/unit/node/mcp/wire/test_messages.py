"""JSON-RPC messages: whatever a server sends is a message or a WireError, and numbers stay exact."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from smg_node.mcp.wire.messages import (
    Answer,
    ErrorAnswer,
    Notice,
    ServerRequest,
    WireError,
    json_value,
    one_line,
    read_messages,
    write_error,
    write_notification,
    write_request,
    write_result,
)


def test_each_kind_of_message_is_read() -> None:
    assert read_messages(b'{"jsonrpc":"2.0","id":"a.1","result":{"x":1}}') == [
        Answer("a.1", json(b'{"x":1}'))
    ]
    assert read_messages(b'{"id":"a.1","error":{"code":-32602,"message":"no","data":{"k":1}}}') == [
        ErrorAnswer("a.1", -32602, "no", b'{"k":1}')
    ]
    assert read_messages(b'{"id":null,"error":{"code":-32700}}') == [ErrorAnswer(None, -32700, "")]
    (request,) = read_messages(b'{"id":7,"method":"ping"}')
    assert isinstance(request, ServerRequest)
    assert request.id == b"7"
    (notice,) = read_messages(b'{"method":"notifications/progress","params":{"progressToken":"a"}}')
    assert isinstance(notice, Notice)


def json(text: bytes) -> Raw:
    (answer,) = read_messages(b'{"id":"x","result":' + text + b"}")
    assert isinstance(answer, Answer)
    return answer.result


def test_a_batch_is_read_as_its_messages() -> None:
    read = read_messages(b' [{"id":"a","result":{}},{"method":"m"}]')
    assert [type(one) for one in read] == [Answer, Notice]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"1",
        b'"x"',
        b"{}",
        b'{"id":"a"}',
        b'{"result":{}}',
        b'{"id":"a","error":3}',
        b'{"method":3}',
        b'{"id":"a","result":{}',
        b'{"id":"\xff","result":{}}',
        b'{"id":"\\ud800","result":{}}',
        b"[" * 100_000,
        b'{"id":"a","result":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"[" + b'{"method":"m"},' * 1000 + b'{"method":"m"}]',
    ],
)
def test_what_is_no_message_is_an_error_of_this_module(text: bytes) -> None:
    with pytest.raises(WireError):
        read_messages(text)


@given(st.binary(max_size=200))
def test_any_bytes_are_messages_or_that_error(text: bytes) -> None:
    with contextlib.suppress(WireError):
        assert read_messages(text) is not None


def test_an_id_that_is_no_string_is_nobodys() -> None:
    assert read_messages(b'{"id":1,"result":{}}') == [Answer("1", json(b"{}"))]
    assert read_messages(b'{"id":[1],"error":{"code":1}}') == [ErrorAnswer("[1]", 1, "")]


def test_a_code_that_is_no_integer_is_an_internal_error() -> None:
    assert read_messages(b'{"id":"a","error":{"code":4e2}}') == [ErrorAnswer("a", 400, "")]
    assert read_messages(b'{"id":"a","error":{"code":1.5}}') == [ErrorAnswer("a", -32603, "")]
    assert read_messages(b'{"id":"a","error":{"code":1,"message":{}}}') == [ErrorAnswer("a", 1, "")]


def test_a_strangers_message_is_cut_and_has_no_control_characters() -> None:
    (answer,) = read_messages(
        b'{"id":"a","error":{"code":1,"message":"a\\u001b[2J' + b"x" * 9000 + b'"}}'
    )
    assert isinstance(answer, ErrorAnswer)
    assert len(answer.message) == 2000
    assert answer.message.startswith("a [2Jx")


def test_written_messages_are_one_line_and_exact() -> None:
    arguments = one_line(b'{"big": 123456789012345678901234567890,\r\n "f": 1.10}')
    text = write_request("a.1", "tools/call", {"name": "t", "arguments": arguments})
    assert b"\n" not in text
    assert b'{"big": 123456789012345678901234567890,   "f": 1.10}' in text
    assert write_notification("notifications/initialized") == (
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    )
    assert write_result(b"7", {}) == b'{"jsonrpc":"2.0","id":7,"result":{}}'
    assert write_error(b'"q"', -32601, "no") == (
        b'{"jsonrpc":"2.0","id":"q","error":{"code":-32601,"message":"no"}}'
    )


def test_integers_of_any_size_keep_their_value() -> None:
    assert json_value(b"9007199254740993") == 9007199254740993
    assert json_value(b"123456789012345678901234567890") == 123456789012345678901234567890
