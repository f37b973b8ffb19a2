"""Conversations between two nodes without a transport: rows, greetings, and a talk to its end."""

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from itertools import count as counting
from typing import Any

from smg_mesh.swim.messages import Address, Claim, Rank
from smg_mesh.sync.exchange.exchange_machine import Exchange, Frame, Opening, Step
from smg_mesh.sync.exchange.piece_interface import Pieces


def opening(node: str, **said: Any) -> Opening:
    """Return what a node says first; `said` replaces any of its fields."""
    usual = {"name": node, "boot": 1, "label": "test", "digest": bytes(16), "full": False}
    return Opening(**{**usual, **said})


def claims(count: int, prefix: str = "n") -> list[Claim]:
    """Return so many rows of living members."""
    return [
        Claim(
            f"{prefix}{number}", 1, 0, Rank.ALIVE, Address("10.0.0.1", 1 + number % 65_535), b"meta"
        )
        for number in range(count)
    ]


def side(
    name: str, pieces: Pieces, *, opener: bool, rows: list[Claim] | None = None, **said: Any
) -> Exchange:
    """Return a side that holds pieces, and rows if any."""
    digest = bytes(8) if rows is None else name.encode() * 8
    mine = opening(name, digest=digest + pieces.digest(), **said)
    return Exchange(mine, lambda: rows or [], opener=opener, pieces=pieces)


@dataclass
class Talk:
    """Everything that was said and learned."""

    frames: list[tuple[str, Frame]] = field(default_factory=list)
    learned_by_opener: list[Claim] = field(default_factory=list)
    learned_by_answerer: list[Claim] = field(default_factory=list)


def take(
    machine: Exchange, frame: Frame, *, deeds_max: int = 1_000_000
) -> tuple[Step, list[Frame]]:
    """Let a side take a frame and do all that follows, or so much of it; return what it sends."""
    step = machine.receive(frame)
    first, sent = step, [*step.send]
    while step.more and deeds_max > 0:
        deeds_max -= 1
        step = machine.proceed()
        sent += step.send
    return first, sent


def converse(
    opener: Exchange,
    answerer: Exchange,
    *,
    frames_max: int = 10_000,
    before: Callable[[Frame], object] = lambda frame: None,
) -> Talk:
    """Let both talk until neither has anything to say, or `frames_max` frames were received.

    `before` sees each frame before it arrives.
    """
    talk = Talk()
    to_answerer: deque[Frame] = deque(opener.begin())
    to_opener: deque[Frame] = deque(answerer.begin())
    received = 0
    while (to_answerer or to_opener) and received < frames_max:
        received += 1
        if to_answerer:
            frame = to_answerer.popleft()
            talk.frames.append(("opener", frame))
            before(frame)
            step, sent = take(answerer, frame)
            talk.learned_by_answerer += step.learned
            to_opener += sent
        else:
            frame = to_opener.popleft()
            talk.frames.append(("answerer", frame))
            before(frame)
            step, sent = take(opener, frame)
            talk.learned_by_opener += step.learned
            to_answerer += sent
    return talk


def sides(mine: Pieces, theirs: Pieces, *, full: bool = False) -> tuple[Exchange, Exchange]:
    """Return a, which opens, and b."""
    return side("a", mine, opener=True, full=full), side("b", theirs, opener=False)


def talk_over(mine: Pieces, theirs: Pieces, *, full: bool = False) -> Talk:
    """Let a and b converse to the end, which is a good one."""
    opener, answerer = sides(mine, theirs, full=full)
    said = converse(opener, answerer)
    assert opener.done
    assert answerer.done
    assert opener.refused is answerer.refused is None
    assert opener.full == answerer.full == full
    return said


def kinds(said: Talk) -> list[str]:
    """Return who said what, shortly."""
    return [f"{who[0]}:{type(frame).__name__}" for who, frame in said.frames]


# ── Sides that block ─────────────────────────────────────────────────────────

Wish = Frame | None
"""What a side waits for: that this frame is taken, or (None) that one comes."""


def living(machine: Exchange) -> Generator[Wish, Frame | None, None]:
    """Be one side as its loop is: it writes one frame at a time, and reads only when all is written."""
    yield from machine.begin()
    while not machine.done:
        received = yield None
        assert received is not None
        step = machine.receive(received)
        yield from step.send
        while step.more:
            step = machine.proceed()
            yield from step.send


def converse_through(opener: Exchange, answerer: Exchange, *, room: int) -> int:
    """Let both talk through pipes that hold `room` frames, 0: each is handed over; return how many.

    A write waits for room, and there is none to lend: that both wait for ever is an AssertionError.
    """
    sides = (living(opener), living(answerer))
    pipes: tuple[deque[Frame], deque[Frame]] = (deque(), deque())  # to the opener, to the answerer
    wishes: list[Wish] = [next(one) for one in sides]
    over = [False, False]
    for carried in counting():
        if all(over):
            return carried
        moved = False
        for me in (0, 1):
            if over[me]:
                continue
            wish, other = wishes[me], 1 - me
            reply: Frame | None = None
            if wish is None:
                if not pipes[me]:
                    continue
                reply = pipes[me].popleft()
            else:
                read_for = not over[other] and wishes[other] is None
                if len(pipes[other]) >= room and not (read_for and not pipes[other]):
                    continue
                pipes[other].append(wish)
            moved = True
            try:
                wishes[me] = sides[me].send(reply)
            except StopIteration:
                over[me] = True
        assert moved, "both wait"
    raise AssertionError("counts for ever")
