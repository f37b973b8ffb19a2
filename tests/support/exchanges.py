"""Conversations between two nodes without a transport: rows, greetings, and a talk to its end."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from smg_mesh.swim.messages import Address, Claim, Rank
from smg_mesh.sync.exchange import Exchange, Frame, Opening, Step


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


@dataclass
class Talk:
    """Everything that was said and learned."""

    frames: list[tuple[str, Frame]] = field(default_factory=list)
    learned_by_opener: list[Claim] = field(default_factory=list)
    learned_by_answerer: list[Claim] = field(default_factory=list)


def converse(opener: Exchange, answerer: Exchange, *, frames_max: int = 10_000) -> Talk:
    """Let both talk until neither has anything to say, or `frames_max` frames were received."""
    talk = Talk()
    to_answerer: deque[Frame] = deque(opener.begin())
    to_opener: deque[Frame] = deque(answerer.begin())
    received = 0
    while (to_answerer or to_opener) and received < frames_max:
        received += 1
        if to_answerer:
            frame = to_answerer.popleft()
            talk.frames.append(("opener", frame))
            step: Step = answerer.receive(frame)
            talk.learned_by_answerer += step.learned
            to_opener += step.send
        else:
            frame = to_opener.popleft()
            talk.frames.append(("answerer", frame))
            step = opener.receive(frame)
            talk.learned_by_opener += step.learned
            to_answerer += step.send
    return talk
