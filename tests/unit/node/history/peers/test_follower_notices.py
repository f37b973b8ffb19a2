"""A client that follows at another node counts as there at the node that makes its answer."""

from typing import Any

import msgspec
import pytest

from smg_node.history.peers.follower_notices import (
    ASK_S,
    NOTICE_MOST_S,
    TOPIC,
    FollowerNotices,
    interval_s,
)
from support.history.peer_histories import Net


class Run:
    def __init__(self) -> None:
        self.followed = 0

    def followed_elsewhere(self) -> None:
        self.followed += 1


class Two:
    """A maker with one run, and a node where it is followed."""

    def __init__(self) -> None:
        self.net = Net()
        self.run = Run()
        self.now_s = 100.0
        runs = {("acme", "int_1"): self.run}
        FollowerNotices(
            self.net.peers("maker"), lambda *key: runs.get(key), now_s=lambda: self.now_s
        )
        self.there = FollowerNotices(
            self.net.peers("other"), lambda *_: None, now_s=lambda: self.now_s
        )


async def test_the_maker_is_told_at_once_and_again_when_it_is_time() -> None:
    two = Two()
    notice = two.there.of("maker", "acme", "int_1", grace_s=2.0)
    counts = []
    for passed_s in (0.0, 0.25, 0.24, 0.01, 0.1, 0.4):
        two.now_s += passed_s
        await notice.tell()
        counts.append(two.run.followed)
    assert counts == [1, 1, 1, 2, 2, 3]


@pytest.mark.parametrize(("tenant", "interaction_id"), [("rival", "int_1"), ("acme", "int_2")])
async def test_a_run_that_is_not_there_is_no_error(tenant: str, interaction_id: str) -> None:
    two = Two()
    await two.there.of("maker", tenant, interaction_id, grace_s=2.0).tell()
    assert two.run.followed == 0
    assert two.net.asked == [("other", "maker")]


@pytest.mark.parametrize("state", ["dead", "left"])
async def test_a_maker_that_is_gone_is_not_asked(state: str) -> None:
    two = Two()
    two.net.states["maker"] = state
    await two.there.of("maker", "acme", "int_1", grace_s=2.0).tell()
    assert two.net.asked == []


@pytest.mark.parametrize(("node", "grace_s"), [("", 2.0), ("maker", 0.0)])
async def test_there_may_be_nobody_to_tell(node: str, grace_s: float) -> None:
    two = Two()
    await two.there.of(node, "acme", "int_1", grace_s=grace_s).tell()
    assert two.net.asked == []


@pytest.mark.parametrize("fault", ["unreachable", "lost", "timeout"])
async def test_a_notice_that_is_lost_is_told_again(fault: str) -> None:
    two = Two()
    two.net.faults.append(fault)
    notice = two.there.of("maker", "acme", "int_1", grace_s=2.0)
    await notice.tell()
    two.now_s += 0.5
    await notice.tell()
    assert two.run.followed == (2 if fault == "lost" else 1)


@pytest.mark.parametrize(
    "payload",
    [b"", b"\xc1", b"x" * 2_000, msgspec.msgpack.encode(["acme", "int_1"])],
)
async def test_garbage_is_answered_and_counts_nothing(payload: bytes) -> None:
    two = Two()
    answer: Any = await two.net.answers["maker", TOPIC](payload, "other")
    assert (answer, two.run.followed) == (b"no", 0)


def test_notices_come_several_times_before_a_client_counts_as_away() -> None:
    assert [interval_s(grace_s) for grace_s in (0.4, 2.0, 5.0, 600.0)] == [0.1, 0.5, 1.0, 1.0]
    assert NOTICE_MOST_S + ASK_S < 5.0
