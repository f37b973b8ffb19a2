"""What nodes really share, over real streams: a newcomer's first exchange, cut and whole, and what it costs."""

from random import Random
from typing import Any

import pytest

from smg_mesh.config import StateOptions
from smg_mesh.io.streams import StreamError
from smg_mesh.io.streams.frames import decode_frame, encode_frame
from smg_mesh.sync.replica import Replica
from smg_mesh.sync.replica_effects import Wish
from support.mesh.mesh_streams import Node, derived, impostor, plain, up
from support.state.exchanges import converse, sides
from support.state.replica_world import WALL_MS

WORKERS = 300
NOW_MS = 1_000


def replica(name: str, workers: int = 0) -> Replica:
    """Return what a node replicates, with so many workers of its own."""
    wishes: list[Wish] = []
    made = Replica(
        name,
        1,
        options=StateOptions(),
        rng=Random(name),
        now_ms=lambda: NOW_MS,
        wall_ms=lambda: WALL_MS,
        tell=wishes.append,
    )
    space = made.namespace("workers")
    for number in range(workers):
        url = f"grpc://10.0.{number // 256}.{number % 256}:8000"
        space.put(f"{number:016x}/api", url.encode() + b" vllm regular qwen3" + bytes(100))
    return made


def same(one: Replica, other: Replica) -> bool:
    held = [
        [(held.key, held.value) for held in each.namespace("workers").items()]
        for each in (one, other)
    ]
    return one.digest() == other.digest() and held[0] == held[1]


@pytest.mark.parametrize("newcomer_opens", [True, False])
async def test_a_newcomer_gets_everything_in_its_first_exchange(newcomer_opens: bool) -> None:
    old, new = replica("old", WORKERS), replica("new")
    old.registers.set("load", "w1", b"7", ttl_ms=60_000)
    a, b = Node("a", derived("a"), pieces=old), Node("b", derived("b"), pieces=new)
    async with up(a, b):
        one, other = (b, a) if newcomer_opens else (a, b)
        await one.exchange_with(other)
        assert other.ended_with == [(one.name, True)]
    assert same(old, new)
    assert len(new.namespace("workers")) == WORKERS
    assert [found.content for found in new.registers.get("load", "w1")] == [b"7"]


async def test_both_sides_of_a_cut_have_the_same_after_one_exchange() -> None:
    left, right = replica("left", WORKERS), replica("right", 40)
    left.namespace("settings").put("limit/acme", b"60")
    right.namespace("settings").put("alias/gpt", b"qwen")
    a, b = Node("a", derived("a"), pieces=left), Node("b", derived("b"), pieces=right)
    async with up(a, b):
        await a.exchange_with(b)
        await a.exchange_with(b)  # own entries that were seen over are tidied up in between
    assert same(left, right)
    assert len(left.namespace("settings")) == 2


@pytest.mark.parametrize("frames_max", [3, 5, 12, 30])
async def test_a_cut_exchange_is_gone_on_with(frames_max: int) -> None:
    old, new = replica("old", WORKERS), replica("new")

    async def cut(_requests: object, context: Any) -> None:
        machine = Node("a", plain("a"), pieces=old).machine(opener=False)
        said = 0
        while not machine.done:
            step = machine.receive(decode_frame(await context.read()))
            while True:
                for frame in step.send:
                    if said == frames_max:
                        return
                    said += 1
                    await context.write(encode_frame(frame))
                if not step.more:
                    break
                step = machine.proceed()

    a, b = Node("a", plain("a"), pieces=old), Node("b", plain("b"), pieces=new)
    async with up(a, b), impostor(cut) as address:
        with pytest.raises(StreamError):
            await b.exchange_with(Node("a", plain("a"), address=address), deadline_ms=2_000)
        assert len(new.namespace("workers")) < WORKERS
        await b.exchange_with(a)
    assert same(old, new)


def test_what_a_newcomer_is_sent_is_a_fraction_of_what_it_gets() -> None:
    old, new = replica("old", 5 * WORKERS), replica("new")
    said = converse(*sides(new, old, full=True))
    sent = sum(len(encode_frame(frame)) for _, frame in said.frames)
    plain = sum(piece.size_bytes for piece in old.holdings(full=False))
    assert same(old, new)
    assert sent < 0.4 * plain


def test_who_holds_the_same_is_sent_nothing_of_it() -> None:
    old, new = replica("old", WORKERS), replica("new")
    converse(*sides(new, old))
    assert len(converse(*sides(new, old)).frames) == 2
    assert same(old, new)
