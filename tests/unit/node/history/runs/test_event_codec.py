import random
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import BlockStart, Delta
from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.presenter import ResponsePresenter
from smg_node.history.runs import event_codec as event_log
from smg_node.history.runs.event_codec import packed, terminal, unpacked
from smg_storage.records import EventBlob
from support.history.history_world import ask_of, begin, block, finish

ENDS = [
    FinalStatus.completed(),
    FinalStatus.incomplete("max_output_tokens"),
    FinalStatus.incomplete("content_filter"),
    FinalStatus.failed(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died")),
    FinalStatus.cancelled(),
]


def teller() -> ResponsePresenter:
    return ResponsePresenter(
        ask_of(input="Hi \u2028 ü", metadata={"a": "\u0085"}),
        response_id="resp_1",
        thread="0" * 12,
        created_s=1,
        now_ms=1_000,
        chance=random.Random(1),
    )


def told_of_many_kinds() -> list[NumberedEvent]:
    one = teller()
    told = one.begin(queued=True)
    call = block(1, "call", '{"a":1}', name="f", call_id="call_1")
    for event in [
        begin(),
        *block(0, "text", "Grüße\n\u2028", "Grü", "ße\n\u2028"),
        *call,
        *finish(),
    ]:
        told += one.tell([event])
    return told


def test_what_was_packed_comes_out_byte_for_byte() -> None:
    told = told_of_many_kinds()
    blob = packed(told)
    assert (blob.first, blob.last) == (0, len(told) - 1)
    assert unpacked(blob) == told


@given(st.data())
def test_a_stream_packed_in_any_pieces_is_the_stream(data: st.DataObject) -> None:
    told = told_of_many_kinds()
    cuts = data.draw(st.sets(st.integers(1, len(told) - 1)))
    edges = [0, *sorted(cuts), len(told)]
    blobs = [packed(told[a:b]) for a, b in pairwise(edges)]
    assert [event for blob in blobs for event in unpacked(blob)] == told


@pytest.mark.parametrize("size", [1, 4 << 10, 8 << 10, 32_760, 32_768, 32_776, 256 << 10])
def test_a_blob_of_any_size_is_read_by_any_inflater(size: int) -> None:
    words = random.Random(3).choices(["a", "river", "went", "quietly", "under", "it"], k=size)
    text = " ".join(words)[: max(0, size - 10)]
    line = json_line({"type": "x", "sequence_number": 0, "delta": text})
    blob = packed([NumberedEvent(0, "x", line)])
    assert zlib.decompress(blob.payload) == line
    assert unpacked(blob)[0].data == line
    assert len(blob.payload) <= 1.05 * len(zlib.compress(line, 1))


def test_many_deltas_take_a_fraction_of_their_size() -> None:
    one = teller()
    told = one.begin()
    told += one.tell([begin(), BlockStart(0, 0, "text")])
    told += one.tell([Delta(0, 0, f" word{number}", 1) for number in range(500)])
    assert len(packed(told).payload) * 8 < sum(len(event.data) for event in told)


@given(st.binary(max_size=200))
def test_garbage_is_a_value_error(payload: bytes) -> None:
    with pytest.raises(ValueError, match="blob"):
        unpacked(EventBlob(0, 0, payload))


@given(st.binary(max_size=200))
def test_garbage_that_can_be_inflated_is_a_value_error(lines: bytes) -> None:
    with pytest.raises(ValueError, match="blob"):
        unpacked(EventBlob(0, 0, zlib.compress(lines)))


def test_a_blob_that_was_cut_anywhere_or_has_something_after_it_is_a_value_error() -> None:
    blob = packed(told_of_many_kinds())
    for cut in range(len(blob.payload)):
        with pytest.raises(ValueError, match="blob"):
            unpacked(EventBlob(blob.first, blob.last, blob.payload[:cut]))
    with pytest.raises(ValueError, match="not whole"):
        unpacked(EventBlob(blob.first, blob.last, blob.payload + b"x"))


@pytest.mark.parametrize(("first", "last"), [(0, 2), (1, 4), (0, 4), (-1, 3), (4, 0)])
def test_a_blob_with_other_events_than_it_says_is_a_value_error(first: int, last: int) -> None:
    blob = packed(told_of_many_kinds()[:4])
    with pytest.raises(ValueError, match="does not have the events"):
        unpacked(EventBlob(first, last, blob.payload))


def test_a_blob_that_inflates_without_end_is_a_value_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "UNPACKED_BYTES_MAX", 1 << 16)
    bomb = zlib.compress(b" " * (1 << 20))
    with pytest.raises(ValueError, match="too large"):
        unpacked(EventBlob(0, 0, bomb))


@pytest.mark.parametrize("ended", ENDS, ids=lambda ended: ended.status)
def test_the_end_told_from_the_object_is_what_the_teller_says(ended: FinalStatus) -> None:
    one = teller()
    told = one.begin()
    told += one.tell([begin(), *block(0, "text", "Grüße \u2028")])
    told += one.close(ended.at(7))
    assert terminal(one.response(), told[-1].sequence) == told[-1]


@pytest.mark.parametrize("ended", ENDS, ids=lambda ended: ended.status)
def test_another_end_told_from_the_object_is_what_the_teller_says_instead(
    ended: FinalStatus,
) -> None:
    one = teller()
    told = one.begin()
    told += one.close(FinalStatus.completed().at(7))
    last = one.instead(ended.at(8))
    assert last.sequence == told[-1].sequence
    assert terminal(one.response(), last.sequence) == last


@pytest.mark.parametrize("status", ["queued", "in_progress", "", "odd"])
def test_what_has_not_ended_has_no_end_to_tell(status: str) -> None:
    with pytest.raises(ValueError, match="has not ended"):
        terminal(json_line({"status": status}), 3)


@given(st.binary(max_size=100))
def test_the_end_of_garbage_is_a_value_error(response: bytes) -> None:
    with pytest.raises(ValueError, match=r"no response|has not ended"):
        terminal(response, 0)
