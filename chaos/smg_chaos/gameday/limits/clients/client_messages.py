"""Client messages between a scenario and its clients' processes: a plan at the start, then commands
and replies.
"""

from typing import Final, Literal

import msgspec

MODEL: Final = "sim"
"""Whose engines answer at once."""
TALK: Final = "talk"
"""Whose engines take their time, and end where nobody can know before."""
NUMBERS: Final = 100_000_000
"""Serial numbers a client has of its own; 20 clients fit into the 31 bits of a seed."""


class Plan(msgspec.Struct, frozen=True):
    """Start parameters of a client. `nodes` are hosts; `number` tells clients apart, from 0."""

    host: str
    port: int
    nodes: list[str]
    node_port: int
    number: int
    seed: int
    record: str


class Asks(msgspec.Struct, frozen=True):
    """Body of a request: beside messages and seed, `fields`, as JSON without braces."""

    model: str = MODEL
    fields: str = '"max_tokens":2'
    question: str = "Hello?"
    patience_s: float = 15.0
    """How long its answer is waited for."""


class Command(msgspec.Struct, frozen=True):
    """A command to a client.

    rate: ask each node `per_s` times a second from now on. burst: ask each node `counts` times,
    spread over `over_s`; what is refused is asked again when the answer says, up to `until_us` (wall
    clock). dismiss: of all that was asked so far, nothing comes again. connect: open `counts`
    connections to each node for later. quiet: reply when nothing is open any more. write: write the
    record of all that has ended. `asks` is what is asked from now on, None: what was asked before.
    """

    do: Literal["rate", "burst", "dismiss", "connect", "quiet", "write"]
    per_s: list[float] = []
    counts: list[int] = []
    over_s: float = 0.0
    until_us: int = 0
    asks: Asks | None = None


class Reply(msgspec.Struct, frozen=True):
    """A client's reply to a command it has carried out: what it sent so far, and what that cost
    it.
    """

    did: str
    sent: int
    held_back: int
    late_p99_s: float
    cpu_s: float
