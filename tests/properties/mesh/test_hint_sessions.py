"""Hints between nodes: whatever calls fail, whoever comes and goes, in the end all hold what all have."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.state.hint_world import HintNet, HintNode
from support.tools.example_counts import example_count

NAMES = ("a", "b", "c")
name = st.sampled_from(NAMES)
subject = st.sampled_from(["w1", "w2"])
hashes = st.lists(st.integers(0, 12), min_size=1, max_size=6)
step = st.one_of(
    st.tuples(st.just("add"), name, subject, hashes),
    st.tuples(st.just("remove"), name, subject, hashes),
    st.tuples(st.just("clear"), name, subject),
    st.tuples(st.just("quiet"), name, st.booleans()),
    st.tuples(st.just("turns"), st.integers(1, 30), st.sampled_from([0.0, 0.5, 1.0])),
    st.tuples(st.just("restart"), name),
)


def do(net: HintNet, what: str, *rest: Any) -> None:
    if what == "turns":
        net.loss = rest[1]
        net.run(100 * rest[0])
        return
    node = net.nodes[rest[0]]
    if what == "restart":
        net.nodes[rest[0]] = HintNode(rest[0], node.boot + 1)
        net.meet()
    elif what == "clear":
        node.hashes[rest[1]].clear()
        node.talk.stream.clear(rest[1])
    elif what == "quiet":
        node.talk.stream.keep_quiet(quiet=rest[1])
    else:
        getattr(node, what)(rest[1], *rest[2])


@settings(max_examples=example_count(150))
@given(st.lists(step, max_size=30), st.integers(0, 1 << 32))
def test_in_the_end_all_hold_what_all_have(steps: list[tuple[Any, ...]], seed: int) -> None:
    net = HintNet(*NAMES, seed=seed)
    for one in steps:
        do(net, *one)
    net.loss = 0.0
    for node in net.nodes.values():
        node.talk.stream.keep_quiet(quiet=False)
    for _ in range(100):
        if net.agree():
            break
        net.run(1_000)
    assert net.agree()
    net.run(6_000)
    assert net.agree()
    assert all(node.talk.refused == 0 for node in net.nodes.values())


@settings(max_examples=example_count(300))
@given(st.binary(max_size=300))
def test_any_bytes_are_answered(data: bytes) -> None:
    net = HintNet("a", "b")
    net.nodes["a"].add("w1", 1)
    assert isinstance(net.nodes["a"].talk.hear("b", data, 0), bytes)
    assert net.nodes["b"].talk.due(0, calls_max=1)
    following = net.nodes["b"].talk.answered("a", data, 0)
    assert following is None or isinstance(following, bytes)
    net.run(2_000)
    assert net.agree()
