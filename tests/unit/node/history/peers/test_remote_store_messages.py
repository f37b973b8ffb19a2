import inspect

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.history.peers import remote_store_messages as words
from smg_node.history.peers.remote_store_messages import MessageError
from smg_node.history.peers.routed_store import RoutedStore
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Item, ItemPage, KeyState, Reserved, Status
from smg_storage.store import HistoryStore
from smg_storage.store_wrapper import StoreWrapper

_UNREADABLE = (b"", b"\xc1", b"\x00", msgspec.msgpack.encode("text"), msgspec.msgpack.encode({}))


def asked_of(operation: str, **arguments: object) -> bytes:
    return words.write_request(operation, arguments, tenant="acme", timeout_s=2.0)


def test_every_operation_that_is_for_somebody_says_where_it_is_done() -> None:
    for name in words.operations():
        assert getattr(RoutedStore, name) is not getattr(StoreWrapper, name, None), name
    for name, found in inspect.getmembers(HistoryStore, inspect.isfunction):
        if "access" in inspect.signature(found).parameters:
            assert name in words.operations()


def test_a_question_comes_as_it_was_asked() -> None:
    made = Item(id="msg_1", item_type="message", document=b'{"a":1.0}\x00', created_us=5)
    content = words.write_request(
        "append_items",
        {"conversation_id": "conv_1", "records": [made], "now_us": 7},
        tenant="acme",
        timeout_s=2.5,
        request_id="req_1",
    )
    asked, arguments = words.read_request(content)
    assert (asked.operation, asked.tenant, asked.timeout_s, asked.request_id) == (
        "append_items",
        "acme",
        2.5,
        "req_1",
    )
    assert arguments == {
        "conversation_id": "conv_1",
        "records": [made],
        "now_us": 7,
        "expires_us": 0,
    }


def test_a_result_comes_as_it_was_returned() -> None:
    page = ItemPage([Item("msg_1", "message", b"{}", 5)], [3], has_more=True)
    for operation, result in (
        ("list_items", page),
        ("list_items", None),
        ("delete_item", True),
        ("link_items", [1, 2]),
        ("reserve_key", Reserved(KeyState.SAME, "resp_1")),
        ("append_events", None),
    ):
        assert words.read_reply(words.write_result(result), operation) == result


@pytest.mark.parametrize("kind", list(StoreErrorKind))
def test_a_failure_comes_as_it_was_raised(kind: StoreErrorKind) -> None:
    said = words.write_failure(StoreError(kind, "so it is", missing="resp_1"))
    with pytest.raises(StoreError) as caught:
        words.read_reply(said, "get_response")
    assert (caught.value.kind, caught.value.message, caught.value.missing) == (
        kind,
        "so it is",
        "resp_1",
    )


def test_what_only_one_side_knows_is_refused() -> None:
    with pytest.raises(MessageError):
        words.read_request(asked_of("sing"))
    with pytest.raises(MessageError):
        words.read_request(asked_of("get_response", response_id="resp_1", fenced=True))
    with pytest.raises(MessageError):
        words.read_request(asked_of("get_response"))
    with pytest.raises(MessageError):
        words.read_request(asked_of("get_response", response_id=5))
    for not_asked in ("close", "start", "purge", "orphan_runs", "__init__", "ping"):
        with pytest.raises(MessageError):
            words.read_request(asked_of(not_asked))


def test_an_error_has_nothing_of_a_document() -> None:
    with pytest.raises(MessageError) as caught:
        words.read_request(asked_of("patch_response", response_id="r", patch="my secret"))
    assert "secret" not in str(caught.value)


@given(st.binary(max_size=200) | st.sampled_from(_UNREADABLE))
def test_any_bytes_are_words_or_none(data: bytes) -> None:
    for read in (
        words.read_question,
        words.read_answer,
        words.read_request,
        lambda said: words.read_reply(said, "get_response"),
    ):
        try:
            read(data)
        except (MessageError, StoreError):
            continue


@given(st.binary(max_size=60), st.integers(0, 200), st.integers(0, 255))
def test_a_broken_question_is_a_question_or_none(more: bytes, place: int, byte: int) -> None:
    content = bytearray(
        asked_of("patch_response", response_id="resp_1", from_statuses=[Status.QUEUED], patch={})
    )
    content[place % len(content)] = byte
    try:
        words.read_request(bytes(content) + more)
    except MessageError:
        return
