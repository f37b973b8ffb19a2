"""Hint streams: whatever is lost, repeated or reordered, in the end a reader holds what was published."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_mesh.crdt.hints.hint_messages import HintError, decode_word, encode_word
from smg_mesh.crdt.hints.hint_publisher import HintStream
from smg_mesh.crdt.hints.hint_reader import HintReader
from support.state.hint_world import DictStore, HintLink, Publisher
from support.tools.example_counts import example_count

subject = st.sampled_from(["w1", "w2", "w3"])
hashes = st.lists(st.integers(0, 12), min_size=1, max_size=6)
step = st.one_of(
    st.tuples(st.just("add"), subject, hashes),
    st.tuples(st.just("remove"), subject, hashes),
    st.tuples(st.just("clear"), subject),
    st.tuples(st.just("turn"), st.sampled_from([0.0, 0.5, 1.0]), st.booleans()),
    st.tuples(st.just("restart")),
    st.tuples(st.just("forget"), subject),
)


def do(link: HintLink, what: str, *rest: Any) -> None:
    if what == "turn":
        link.loss, link.disorder = rest
        link.turn()
    elif what == "restart":
        link.publisher = Publisher(stream=link.now_ms + 1)
        link.turn()
    elif what == "forget":
        link.reader.forget_subject(rest[0])
    elif what == "clear":
        link.publisher.clear(rest[0])
    else:
        getattr(link.publisher, what)(rest[0], *rest[1])


@settings(max_examples=example_count(200))
@given(st.lists(step, max_size=40), st.integers(0, 1 << 32), st.sampled_from([300, 65_536]))
def test_a_reader_ends_up_with_what_was_published(
    steps: list[tuple[Any, ...]], seed: int, bytes_per_s: int
) -> None:
    link = HintLink(Publisher(bytes_per_s=max(bytes_per_s, 4_096)), seed=seed)
    for one in steps:
        do(link, *one)
    link.loss, link.disorder = 0.0, False
    for _ in range(60):
        link.run(1_000)
        if link.agrees():
            break
    assert link.agrees()
    link.run(6_000)
    assert link.agrees()
    for name in ("w1", "w2", "w3"):
        count, _ = link.reader.held("p", name)
        assert count == len(link.publisher.hashes[name])


@settings(max_examples=example_count(500))
@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    reader = HintReader(DictStore(), wanted=lambda *_: True)
    stream = HintStream(1, contents=lambda _: ())
    for hear in (reader.hear, stream.hear):
        try:
            hear("p", data, now_ms=0)
        except HintError:
            continue
        assert encode_word(decode_word(data))


@settings(max_examples=example_count(300))
@given(st.data())
def test_damaged_messages_never_do_more_than_be_refused(data: st.DataObject) -> None:
    publisher = Publisher()
    publisher.add("w1", *range(5))
    link = HintLink(publisher)
    messages = list(publisher.stream.due("r", 0))
    publisher.add("w2", 1)
    messages += publisher.stream.due("r", 100)
    for message in messages:
        place = data.draw(st.integers(0, len(message) - 1))
        damaged = bytearray(message)
        damaged[place] ^= data.draw(st.integers(1, 255))
        try:
            link.reader.hear("p", bytes(damaged), now_ms=0)
        except HintError:
            continue
