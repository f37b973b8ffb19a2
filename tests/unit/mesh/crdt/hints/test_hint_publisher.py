"""Hints told within a budget, and what a reader makes of what arrives."""

import pytest

from smg_mesh.crdt.hints.hint_messages import (
    PART_HASHES,
    AskDigests,
    AskPart,
    Busy,
    Deltas,
    Digests,
    HintError,
    Part,
    decode_word,
    encode_word,
    pack_delta,
)
from smg_mesh.crdt.hints.hint_publisher import DIGESTS_IDLE_MS, SERVED_MS, HintStream
from smg_mesh.crdt.hints.hint_reader import HintReader
from support.state.hint_world import DictStore, HintLink, Publisher


def words(messages: object) -> list[object]:
    assert isinstance(messages, list | tuple)
    return [decode_word(message) for message in messages]


# ── Told and heard ───────────────────────────────────────────────────────────


def test_changes_arrive_in_order_and_once() -> None:
    link = HintLink()
    link.turn()
    link.publisher.add("w1", 1, 2, 3)
    link.publisher.add("w2", 3)
    link.publisher.remove("w1", 2)
    link.turn()
    assert link.store.of("p") == {"w1": {1, 3}, "w2": {3}}
    assert link.reader.held("p", "w1") == (2, 1 ^ 3)
    assert link.asked == 0
    link.publisher.clear("w1")
    link.turn()
    assert link.store.of("p") == {"w2": {3}}
    assert link.reader.held("p", "w1") == (0, 0)


def test_one_message_says_each_name_once_and_ten_bytes_a_change() -> None:
    publisher = Publisher()
    publisher.stream.due("r", 0)
    publisher.add("w1", *range(500))
    publisher.add("w2", *range(500))
    [message] = publisher.stream.due("r", 100)
    assert len(message) < 10 * 1000 + 64
    word = decode_word(message)
    assert isinstance(word, Deltas)
    assert (word.first, word.subjects) == (1, ("w1", "w2"))


def test_a_peer_that_comes_late_is_told_digests_and_fetches_the_rest() -> None:
    publisher = Publisher()
    publisher.add("w1", *range(1, 100_001))
    publisher.add("w2", 5)
    link = HintLink(publisher)
    link.turn()
    assert link.agrees()
    assert link.reader.fetched == 2
    assert link.reader.gaps == 0


def test_nothing_is_said_while_nothing_changes_but_digests_once_more_and_then_rarely() -> None:
    link = HintLink()
    link.publisher.add("w1", 1)
    link.run(1_000)
    link.sent_bytes.clear()
    link.run(60_000)
    assert sum(size > 0 for _, size in link.sent_bytes) == 1
    for _ in range(2 * DIGESTS_IDLE_MS // 10_000):
        link.turn(step_ms=10_000)
    assert sum(size > 0 for _, size in link.sent_bytes) == 3
    assert link.reader.fetched == 1


def test_after_a_rest_a_change_is_told_at_once_and_its_digest_seconds_later() -> None:
    link = HintLink()
    link.publisher.add("w1", 1)
    link.run(50_000)
    link.sent_bytes.clear()
    link.publisher.add("w1", 2)
    link.turn()
    assert link.agrees()
    link.run(6_000)
    assert sum(size > 0 for _, size in link.sent_bytes) == 2
    assert (link.publisher.stream.dropped, link.reader.fetched) == (0, 1)


def test_after_a_call_that_came_to_nothing_the_peer_gets_digests_soon() -> None:
    link = HintLink()
    link.publisher.add("w1", 1)
    link.run(50_000)
    link.loss = 1.0
    link.publisher.add("w1", 2)
    link.turn()
    link.loss = 0.0
    link.publisher.stream.lost("r", link.now_ms)
    link.publisher.stream.lost("nobody", link.now_ms)
    link.run(500)
    assert link.agrees()


def test_a_lost_message_is_a_gap_and_only_what_differs_is_fetched() -> None:
    link = HintLink()
    link.publisher.add("w1", 1)
    link.publisher.add("w2", 2)
    link.turn()
    assert link.agrees()
    link.publisher.add("w1", 3)
    link.loss = 1.0
    link.turn()
    link.loss = 0.0
    link.publisher.add("w2", 4)
    fetched = link.reader.fetched
    link.turn()
    assert link.reader.gaps == 1
    link.run(1_000)
    assert link.agrees()
    assert link.reader.fetched == fetched + 1


def test_a_lost_last_message_is_noticed_by_the_next_digest() -> None:
    link = HintLink()
    link.publisher.add("w1", 1)
    link.turn()
    link.loss = 1.0
    link.publisher.add("w1", 2)
    link.turn()
    link.loss = 0.0
    link.run(5_200)
    assert link.agrees()


def test_messages_that_come_twice_or_late_change_nothing() -> None:
    publisher = Publisher()
    publisher.stream.due("r", 0)
    reader = HintReader(store := DictStore(), wanted=lambda *_: True)
    publisher.add("w1", 1)
    first = publisher.stream.due("r", 100)
    publisher.remove("w1", 1)
    publisher.add("w1", 2)
    second = publisher.stream.due("r", 200)
    for message in (*first, *second, *first, *second, *first):
        reader.hear("p", message, now_ms=200)
    assert store.of("p") == {"w1": {2}}
    assert reader.held("p", "w1") == (1, 2)


def test_a_new_life_of_a_publisher_begins_anew_and_the_old_one_is_over() -> None:
    link = HintLink()
    link.publisher.add("w1", 1, 2)
    link.turn()
    old = encode_word(Deltas(1, 3, ("w1",), pack_delta(9, 0, 0)))
    link.publisher = Publisher(stream=2)
    link.publisher.add("w1", 7)
    link.turn()
    assert link.store.of("p") == {"w1": {7}}
    assert link.reader.hear("p", old, now_ms=link.now_ms) == ()
    assert link.store.of("p") == {"w1": {7}}


def test_what_the_publisher_has_no_more_goes_by_the_digest() -> None:
    link = HintLink()
    link.publisher.add("w1", 1)
    link.publisher.add("w2", 2)
    link.publisher.add("w3", 3)
    link.turn()
    link.loss = 1.0
    link.publisher.clear("w2")
    link.publisher.remove("w3", 3)
    link.turn()
    link.loss = 0.0
    link.run(5_200)
    assert link.store.of("p") == {"w1": {1}}


def test_a_removed_worker_has_no_hints_at_once_and_gets_none() -> None:
    link = HintLink()
    link.publisher.add("w1", 1)
    link.publisher.add("w2", 2)
    link.turn()
    link.gone.add("w1")
    link.reader.forget_subject("w1")
    assert link.store.of("p") == {"w2": {2}}
    link.publisher.add("w1", 3)
    link.run(11_000)
    assert link.store.of("p") == {"w2": {2}}
    assert link.reader.fetched == 2


@pytest.mark.parametrize("perhaps", [False, True])
def test_what_a_publisher_does_not_hear_any_more_is_doubted_and_what_is_not_so_is_dropped(
    perhaps: bool,  # a case
) -> None:
    link = HintLink()
    link.publisher.add("w1", 1, 2)
    link.turn()
    link.publisher.clear("w1", perhaps=perhaps)
    link.turn()
    assert link.agrees()
    assert link.store.of("p") == {}
    assert link.store.doubted == ({("p", "w1"): {1, 2}} if perhaps else {})


def test_a_publisher_that_is_gone_has_no_hints() -> None:
    link = HintLink()
    link.publisher.add("w1", 1)
    link.turn()
    link.reader.forget_owner("p")
    assert link.store.of("p") == {}
    assert link.store.doubted == {("p", "w1"): {1}}
    assert link.reader.held("p", "w1") == (0, 0)
    link.publisher.stream.forget("r")
    link.turn()
    assert link.agrees()


# ── The budget ───────────────────────────────────────────────────────────────


def test_what_is_more_than_the_budget_is_dropped_and_the_newest_kept() -> None:
    publisher = Publisher(bytes_per_s=10_000)
    publisher.stream.due("r", 0)
    publisher.add("w1", *range(1, 5_001))
    told: list[bytes] = []
    for now_ms in range(100, 2_100, 100):
        told += publisher.stream.due("r", now_ms)
    deltas = [word for word in words(told) if isinstance(word, Deltas)]
    assert deltas[0].first == 4_001
    assert sum(len(word.packed) // 10 for word in deltas) == 1_000
    assert publisher.stream.dropped == 4_000


@pytest.mark.parametrize("burst", [10, 400, 3_000])
def test_no_second_has_more_bytes_than_the_budget_but_the_first(burst: int) -> None:
    publisher = Publisher(bytes_per_s=10_000)
    for number in range(50):
        publisher.add(f"a worker with a long name, number {number}", number)
    link = HintLink(publisher)
    for turn in range(200):
        publisher.add("w1", *range(turn * burst, turn * burst + burst))
        link.turn()
    sizes = [size for _, size in link.sent_bytes]
    for first in range(len(sizes)):
        window = sizes[first : first + 50]
        assert sum(window) <= 10_000 * (0.1 * len(window) + 1.0)


def test_a_peer_that_never_catches_up_still_gets_digests() -> None:
    link = HintLink(Publisher(bytes_per_s=10_000))
    for turn in range(300):
        link.publisher.add("w1", *range(turn * 500, turn * 500 + 500))
        link.turn()
    assert link.reader.fetched >= 2
    link.run(12_000)
    assert link.agrees()


def test_each_peer_has_a_budget_of_its_own() -> None:
    publisher = Publisher(bytes_per_s=10_000)
    for peer in ("q", "r"):
        publisher.stream.due(peer, 0)
    publisher.add("w1", *range(900))
    assert publisher.stream.due("q", 10) != []
    assert len(publisher.stream.due("r", 10)[0]) > 8_000


def test_digests_of_many_subjects_come_page_by_page_and_cover_all() -> None:
    publisher = Publisher()
    for number in range(3_000):
        publisher.add(f"worker-number-{number:05}", number)
    link = HintLink(publisher)
    link.run(3_000)
    assert link.agrees()
    for number in range(0, 3_000, 7):
        publisher.clear(f"worker-number-{number:05}")
    link.loss = 1.0
    link.turn()
    link.loss = 0.0
    link.run(6_000)
    assert link.agrees()


def test_a_clock_that_stands_still_gives_no_more_room() -> None:
    publisher = Publisher(bytes_per_s=10_000)
    publisher.stream.due("r", 0)
    publisher.add("w1", *range(1_000))
    first = sum(map(len, publisher.stream.due("r", 0)))
    assert 9_000 < first <= 10_000
    assert publisher.stream.due("r", 0) == []


# ── Everything about one subject ────────────────────────────────────────────


def test_at_most_two_peers_are_served_at_once_and_the_third_is_told_so() -> None:
    publisher = Publisher()
    publisher.add("w1", *range(PART_HASHES + 1))
    publisher.add("w2", *range(PART_HASHES + 1))
    ask = encode_word(AskPart(1, "w1", 0))

    def answer(peer: str, message: bytes = ask, now_ms: int = 0) -> object:
        [found] = publisher.stream.hear(peer, message, now_ms=now_ms)
        return decode_word(found)

    assert isinstance(answer("a"), Part)
    assert isinstance(answer("b"), Part)
    assert answer("c") == Busy(1, "w1")
    assert isinstance(answer("a", encode_word(AskPart(1, "w2", 0))), Part)
    rest = answer("b", encode_word(AskPart(1, "w1", 1, 2 * PART_HASHES + 3)))
    assert isinstance(rest, Part)
    assert rest.last
    assert isinstance(answer("c"), Part)
    assert answer("b") == Busy(1, "w1")
    assert isinstance(answer("b", now_ms=SERVED_MS + 1), Part)
    publisher.stream.forget("b")


def test_one_peer_gets_two_subjects_at_a_time() -> None:
    publisher = Publisher()
    for subject in ("a", "b", "c"):
        publisher.add(subject, *range(PART_HASHES + 1))
    answers = [
        publisher.stream.hear("r", encode_word(AskPart(1, subject, 0)), now_ms=0)[0]
        for subject in ("a", "b", "c", "a")
    ]
    kinds = [type(decode_word(answer)).__name__ for answer in answers]
    assert kinds == ["Part", "Part", "Busy", "Part"]


def test_a_part_of_nothing_or_of_another_time_is_answered_with_busy() -> None:
    publisher = Publisher()
    publisher.add("w1", *range(PART_HASHES + 1))
    assert len(publisher.stream.hear("r", encode_word(AskPart(1, "w1", 0)), now_ms=0)) == 1
    for ask in (AskPart(1, "w1", 1, 7), AskPart(1, "w1", 9, 1), AskPart(1, "w9", 1, 1)):
        [answer] = publisher.stream.hear("r", encode_word(ask), now_ms=0)
        assert decode_word(answer) == Busy(1, ask.subject)


def test_an_unknown_subject_has_nothing() -> None:
    publisher = Publisher()
    [answer] = publisher.stream.hear("r", encode_word(AskPart(1, "w1", 0)), now_ms=0)
    assert decode_word(answer) == Part(1, "w1", 0, 1, True, b"")


def test_questions_to_another_life_are_not_answered() -> None:
    publisher = Publisher(stream=5)
    for stream in (4, 6):
        assert publisher.stream.hear("r", encode_word(AskDigests(stream)), now_ms=0) == ()
        assert publisher.stream.hear("r", encode_word(AskPart(stream, "w", 0)), now_ms=0) == ()


def test_a_peer_that_asks_without_end_gets_digests_now_and_then() -> None:
    publisher = Publisher()
    publisher.add("w1", 1)
    pages = 0
    for now_ms in range(0, 10_000, 50):
        publisher.stream.hear("r", encode_word(AskDigests(1)), now_ms=now_ms)
        pages += len(publisher.stream.due("r", now_ms))
    assert pages <= 10_000 // 250 + 1


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x90",
        encode_word(Digests(1, 1, "", (), True)),
        encode_word(Busy(1, "a")),
        encode_word(AskPart(1, "", 0)),
    ],
)
def test_what_asks_a_publisher_nothing_is_refused(message: bytes) -> None:
    with pytest.raises(HintError):
        HintStream(1, contents=lambda _: ()).hear("r", message, now_ms=0)
