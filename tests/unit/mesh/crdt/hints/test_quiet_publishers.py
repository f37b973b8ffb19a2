"""Publishers that keep quiet, hints that are only mentioned, and lives that begin."""

from smg_mesh.crdt.hints.hint_messages import AskPart, Part, decode_word, encode_word
from support.state.hint_world import HintLink, Publisher


def test_a_quiet_publisher_keeps_count_and_says_that_it_has_nothing() -> None:
    link = HintLink()
    link.publisher.add("w1", 1)
    link.turn()
    link.publisher.stream.keep_quiet(quiet=True)
    link.turn()
    assert link.store.of("p") == {}
    link.publisher.add("w1", 2)
    link.publisher.add("w2", 3)
    link.publisher.remove("w1", 1)
    link.run(6_000)
    assert link.store.of("p") == {}
    [part] = link.publisher.stream.hear("r", encode_word(AskPart(1, "w1", 0)), now_ms=link.now_ms)
    assert decode_word(part) == Part(1, "w1", 0, 2, True, b"")
    link.publisher.stream.keep_quiet(quiet=False)
    link.turn()
    assert link.agrees()
    assert link.store.of("p") == {"w1": {2}, "w2": {3}}


def test_what_is_only_mentioned_arrives_also_from_a_quiet_one_and_is_in_no_digest() -> None:
    link = HintLink()
    link.turn()
    link.publisher.stream.keep_quiet(quiet=True)
    link.publisher.stream.mention("w1", [1, 2])
    link.publisher.stream.mention("w2", [2])
    link.turn()
    assert link.store.mentioned == [("p", "w1", (1, 2)), ("p", "w2", (2,))]
    link.run(12_000)
    assert (link.store.of("p"), link.reader.fetched, link.reader.heard) == ({}, 0, 3)
    assert link.publisher.stream.told == 3


def test_a_life_that_begins_tells_all_anew() -> None:
    link = HintLink(Publisher(stream=0))
    link.publisher.add("w1", 1)
    link.turn()
    link.publisher.stream.begin(7)
    link.run(500)
    assert link.agrees()
    assert link.reader.fetched == 2
