"""Lists and watches of Kubernetes: any cut, any order, any garbage."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.cooperative_steps import whole
from smg_node.discovery.sighting import SightingState
from support.kubernetes.list_watches import FIRST, NOW, machine, shown, watching
from support.kubernetes.pod_text import bookmark, event, pod

NAMES = ("vllm-0", "vllm-1", "vllm-2")
CHANGES = st.tuples(
    st.sampled_from(("ADDED", "MODIFIED", "DELETED", "BOOKMARK")),
    st.sampled_from(NAMES),
    st.sampled_from(("True", "False")),
    st.booleans(),
)


def text_of(changes: list[tuple[str, str, str, bool]]) -> bytes:
    """Lines of a watch."""
    lines = []
    for at, (kind, name, ready, deleted) in enumerate(changes):
        if kind == "BOOKMARK":
            lines.append(bookmark(str(100 + at)))
        else:
            ip = f"10.1.0.{NAMES.index(name) + 1}"
            thing = pod(name, ip=ip, ready=ready, deleted=deleted, version=str(100 + at))
            lines.append(event(kind, thing))
    return b"".join(lines)


@given(st.lists(CHANGES, max_size=12), st.lists(st.integers(0, 20_000), max_size=12))
def test_any_cut_gives_the_same_view(
    changes: list[tuple[str, str, str, bool]], cuts: list[int]
) -> None:
    text = text_of(changes)
    at_once, in_pieces = watching(pod()), watching(pod())
    at_once.feed(text, NOW + 1)
    marks = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    for begin, end in pairwise(marks):
        in_pieces.feed(text[begin:end], NOW + 1)
    assert in_pieces.view == at_once.view
    assert in_pieces.counts == at_once.counts


@given(st.lists(CHANGES, max_size=12))
def test_the_last_word_on_each_pod_is_what_is_shown(
    changes: list[tuple[str, str, str, bool]],
) -> None:
    one = watching()
    one.feed(text_of(changes), NOW + 1)
    last = {name: (kind, ready, gone) for kind, name, ready, gone in changes if kind != "BOOKMARK"}
    expected = {
        f"10.1.0.{NAMES.index(name) + 1}:50051": SightingState.LEAVING
        if deleted
        else (SightingState.READY if ready == "True" else SightingState.UNREADY)
        for name, (kind, ready, deleted) in last.items()
        if kind != "DELETED"
    }
    view = one.view
    assert {endpoint: it.state for endpoint, it in view.sightings.items()} == expected
    assert not view.gone & set(view.sightings)


@given(st.lists(CHANGES, max_size=8))
def test_what_comes_twice_changes_nothing(changes: list[tuple[str, str, str, bool]]) -> None:
    once, twice = watching(pod()), watching(pod())
    once.feed(text_of(changes), NOW + 1)
    for change in changes:
        twice.feed(text_of([change]) * 2, NOW + 1)
    assert twice.view.sightings == once.view.sightings
    assert twice.view.gone == once.view.gone


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_end_a_watch_or_wait_for_more(pieces: list[bytes]) -> None:
    one = watching(pod())
    for piece in pieces:
        if one.is_watching:
            one.feed(piece, NOW + 1)
    assert shown(one.view) == {FIRST: "ready"}
    assert one.view.whole_ms == NOW
    assert one.is_watching or one.counts.garbage == 1


@given(st.binary(max_size=200))
def test_any_bytes_are_a_list_or_a_failure(text: bytes) -> None:
    one = machine()
    one.next_step(NOW)
    whole(one.take_page(text, NOW))
    assert one.view.sightings == {}
    assert (one.view.trouble == "") == (one.view.whole_ms > 0)
