"""What a reader of hints makes of what arrives, and what it asks for."""

import pytest

from smg_mesh.crdt.hints.hint_messages import (
    ADD,
    MENTION,
    PART_HASHES,
    AskDigests,
    AskPart,
    Busy,
    Deltas,
    Digest,
    Digests,
    HintError,
    Part,
    decode_word,
    encode_word,
    pack_delta,
    pack_hashes,
)
from smg_mesh.crdt.hints.hint_reader import FETCH_MS, HintReader
from support.state.hint_world import DictStore, Publisher


def words(messages: object) -> list[object]:
    assert isinstance(messages, list | tuple)
    return [decode_word(message) for message in messages]


# ── Fetching ─────────────────────────────────────────────────────────────────


def asks_of(reader: HintReader, now_ms: int) -> list[tuple[str, str, int]]:
    found = []
    for owner, message in reader.due(now_ms):
        word = decode_word(message)
        if isinstance(word, AskPart):
            found.append((owner, word.subject, word.part))
    return found


def page(stream: int = 1, upto: int = 1, **digests: int) -> bytes:
    listed = tuple(Digest(subject, 1, xor) for subject, xor in sorted(digests.items()))
    return encode_word(Digests(stream, upto, "", listed, True))


def test_at_most_two_subjects_are_fetched_at_a_time_over_all_publishers() -> None:
    reader = HintReader(store := DictStore(), wanted=lambda *_: True)
    first = reader.hear("p", page(a=1, b=2, c=3), now_ms=0)
    assert words(first) == [AskPart(1, "a", 0), AskPart(1, "b", 0)]
    assert reader.hear("q", page(a=1), now_ms=0) == []
    part = encode_word(Part(1, "a", 0, 1, True, pack_hashes([1])))
    assert words(reader.hear("p", part, now_ms=1)) == [AskPart(1, "c", 0)]
    assert asks_of(reader, 2) == []
    part = encode_word(Part(1, "b", 0, 1, True, pack_hashes([2])))
    reader.hear("p", part, now_ms=3)
    assert asks_of(reader, 4) == [("q", "a", 0)]
    assert store.of("p") == {"a": {1}, "b": {2}}


def test_who_does_not_answer_is_not_asked_for_a_while_and_others_are() -> None:
    reader = HintReader(DictStore(), wanted=lambda *_: True)
    reader.hear("p", page(a=1, b=2), now_ms=0)
    reader.hear("q", page(c=3), now_ms=0)
    assert asks_of(reader, FETCH_MS - 1) == []
    assert asks_of(reader, FETCH_MS) == [("q", "c", 0)]
    assert asks_of(reader, FETCH_MS + 9_000) == []
    assert asks_of(reader, FETCH_MS + 10_000) == [("p", "a", 0), ("p", "b", 0)]


def test_what_still_differs_is_fetched_again_later_and_later() -> None:
    reader = HintReader(DictStore(), wanted=lambda *_: True)
    asked: list[int] = []
    for now_ms in range(0, 120_000, 500):
        messages = list(reader.hear("p", page(a=1), now_ms=now_ms))
        for word in words(messages):
            if isinstance(word, AskPart):
                asked.append(now_ms)
                wrong = encode_word(Part(1, "a", 0, 1, True, pack_hashes([2])))
                reader.hear("p", wrong, now_ms=now_ms)
    assert asked == [0, 1_000, 3_000, 7_000, 15_000, 31_000, 63_000]


def test_changes_during_a_fetch_are_laid_over_what_was_fetched() -> None:
    publisher = Publisher()
    publisher.add("w1", *range(PART_HASHES + 10))
    reader = HintReader(store := DictStore(), wanted=lambda *_: True)
    [digests] = publisher.stream.due("r", 0)
    [ask] = reader.hear("p", digests, now_ms=0)
    publisher.remove("w1", 1)
    [before] = publisher.stream.due("r", 100)
    [part] = publisher.stream.hear("r", ask, now_ms=100)
    [ask] = reader.hear("p", part, now_ms=100)
    publisher.remove("w1", 2)
    publisher.add("w1", 1, 99_999)
    for message in (before, *publisher.stream.due("r", 200)):
        reader.hear("p", message, now_ms=200)
    [part] = publisher.stream.hear("r", ask, now_ms=200)
    assert reader.hear("p", part, now_ms=200) == []
    assert store.of("p") == publisher.all()
    count, _ = reader.held("p", "w1")
    assert count == len(publisher.hashes["w1"])
    assert words(publisher.stream.due("r", 5_300))[0] == Digests(
        1, 1 + PART_HASHES + 14, "", (Digest("w1", count, reader.held("p", "w1")[1]),), True
    )


def test_changes_that_a_fetch_already_had_are_not_counted_twice() -> None:
    publisher = Publisher()
    publisher.add("w1", 1)
    reader = HintReader(store := DictStore(), wanted=lambda *_: True)
    [digests] = publisher.stream.due("r", 0)
    [ask] = reader.hear("p", digests, now_ms=0)
    publisher.add("w1", 2)
    late = publisher.stream.due("r", 100)
    [part] = publisher.stream.hear("r", ask, now_ms=100)
    reader.hear("p", part, now_ms=100)
    for message in late:
        reader.hear("p", message, now_ms=200)
    assert store.of("p") == {"w1": {1, 2}}
    assert reader.held("p", "w1") == (2, 1 ^ 2)


def test_a_clear_during_a_fetch_holds() -> None:
    publisher = Publisher()
    publisher.add("w1", *range(1, PART_HASHES + 10))
    reader = HintReader(store := DictStore(), wanted=lambda *_: True)
    [digests] = publisher.stream.due("r", 0)
    [ask] = reader.hear("p", digests, now_ms=0)
    [part] = publisher.stream.hear("r", ask, now_ms=100)
    [ask] = reader.hear("p", part, now_ms=100)
    publisher.clear("w1")
    publisher.add("w1", 5)
    for message in publisher.stream.due("r", 200):
        reader.hear("p", message, now_ms=200)
    [part] = publisher.stream.hear("r", ask, now_ms=200)
    reader.hear("p", part, now_ms=200)
    assert store.of("p") == {"w1": {5}}
    assert reader.held("p", "w1") == (1, 5)


def test_a_busy_publisher_is_asked_again_a_second_later() -> None:
    reader = HintReader(DictStore(), wanted=lambda *_: True)
    reader.hear("p", page(a=1), now_ms=0)
    assert reader.hear("p", encode_word(Busy(1, "a")), now_ms=10) == []
    assert asks_of(reader, 900) == []
    assert asks_of(reader, 1_010) == [("p", "a", 0)]


def test_what_was_asked_in_a_call_that_came_to_nothing_is_asked_again_with_the_next_one() -> None:
    reader = HintReader(DictStore(), wanted=lambda *_: True)
    reader.hear("p", page(a=1), now_ms=0)
    assert asks_of(reader, 10) == []
    reader.lost("nobody", 10)
    reader.lost("p", 10)
    assert asks_of(reader, 10) == [("p", "a", 0)]


# ── What is wanted ───────────────────────────────────────────────────────────


def test_a_subject_is_held_from_the_owner_it_is_wanted_from() -> None:
    source = {"w1": "p"}
    store = DictStore()
    reader = HintReader(store, wanted=lambda owner, subject: source.get(subject) == owner)
    for owner in ("p", "q"):
        for ask in reader.hear(owner, page(w1=1), now_ms=0):
            assert decode_word(ask) == AskPart(1, "w1", 0)
            part = encode_word(Part(1, "w1", 0, 1, True, pack_hashes([1])))
            reader.hear(owner, part, now_ms=0)
    assert dict(store.hashes) == {("p", "w1"): {1}}
    source["w1"] = "q"
    reader.forget("p", "w1")
    reader.forget("nobody", "w1")
    reader.doubt()
    assert [(who, decode_word(ask)) for who, ask in reader.due(1)] == [
        ("p", AskDigests(1)),
        ("q", AskDigests(1)),
    ]
    assert reader.hear("p", page(w1=1), now_ms=2) == []
    assert [decode_word(ask) for ask in reader.hear("q", page(w1=1), now_ms=2)] == [
        AskPart(1, "w1", 0)
    ]


def test_what_is_only_mentioned_is_heard_from_everybody() -> None:
    reader = HintReader(store := DictStore(), wanted=lambda *_: False)
    packed = pack_delta(7, 0, MENTION) + pack_delta(8, 0, ADD)
    reader.hear("p", encode_word(Deltas(1, 1, ("w1",), packed)), now_ms=0)
    assert (store.mentioned, store.of("p")) == ([("p", "w1", (7,))], {})


def test_a_publisher_has_arrived_when_all_that_it_had_was_fetched_once() -> None:
    reader = HintReader(DictStore(), wanted=lambda *_: True)
    assert not reader.arrived("p")
    first = encode_word(Digests(1, 1, "", (Digest("a", 1, 1),), last=False))
    reader.hear("p", first, now_ms=0)
    assert not reader.arrived("p")
    rest = encode_word(Digests(1, 1, "a", (Digest("b", 1, 2),), last=True))
    reader.hear("p", rest, now_ms=0)
    assert not reader.arrived("p")
    reader.hear("p", encode_word(Part(1, "a", 0, 1, True, pack_hashes([1]))), now_ms=0)
    assert not reader.arrived("p")
    reader.hear("p", encode_word(Part(1, "b", 0, 1, True, pack_hashes([9]))), now_ms=0)
    assert reader.arrived("p")
    reader.hear("p", page(a=1, b=2), now_ms=5)
    assert reader.arrived("p"), "a digest that differs later is no reason to wait again"
    reader.hear("q", encode_word(Digests(1, 1, "", (), last=True)), now_ms=0)
    assert reader.arrived("q")


# ── Garbage ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xc1",
        b"\x93",
        b"\x91" * 5_000,
        encode_word(AskDigests(1))[:-1],
        encode_word(Deltas(1, 1, ("w",), pack_delta(1, 1, 0))),
        encode_word(Deltas(1, 1, ("w",), b"x" * 11)),
        encode_word(Deltas(1, 1, ("w",), b"")),
        encode_word(Deltas(1, 1, (), pack_delta(1, 0, 0))),
        encode_word(Deltas(1, 1, ("w" * 129,), pack_delta(1, 0, 0))),
        encode_word(Part(1, "w", 0, 1, True, b"1234567")),
        encode_word(Part(1, "w", 128, 1, True, b"")),
        encode_word(AskDigests(1)),
        encode_word(AskPart(1, "w", 0)),
    ],
)
def test_what_tells_a_reader_nothing_is_refused_and_changes_nothing(message: bytes) -> None:
    reader = HintReader(store := DictStore(), wanted=lambda *_: True)
    with pytest.raises(HintError):
        reader.hear("p", message, now_ms=0)
    assert store.of("p") == {}


def test_parts_nobody_asked_for_are_ignored() -> None:
    reader = HintReader(store := DictStore(), wanted=lambda *_: True)
    part = encode_word(Part(1, "a", 0, 1, True, pack_hashes([1])))
    assert reader.hear("p", part, now_ms=0) == ()
    reader.hear("p", page(a=1), now_ms=0)
    for wrong in (
        Part(1, "b", 0, 1, True, b""),
        Part(1, "a", 1, 1, True, b""),
        Part(0, "a", 0, 1, True, b""),
    ):
        assert reader.hear("p", encode_word(wrong), now_ms=0) == ()
    assert store.of("p") == {}
    reader.hear("p", part, now_ms=0)
    assert store.of("p") == {"a": {1}}
