"""Job messages between the bench and its client processes: JSON, one object a line."""

from typing import Literal, TypeAlias

import msgspec

Api: TypeAlias = Literal["chat", "messages", "responses", "interactions"]
"""What a gateway is asked through."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """Prompts of a flow: `kind` of prompts, numbered from `first` on so that no two rounds share
    one.

    `sizes` are bytes of text: of each long prompt for "cycled" (they are cycled) and "tail" (the
    first is what all prompts begin with), of a document for "document"; for "picture" they are width and height of
    pictures that are all new, for "known picture" those of one that is sent again and again; for "tool run" the bytes
    of the result. `said` is the text of an answer, for the history of "turns".
    """

    kind: Literal[
        "short", "cycled", "tail", "document", "turns", "picture", "known picture", "tool run"
    ]
    first: int = 0
    sizes: tuple[int, ...] = ()
    said: str = ""


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of load.

    closed: each of `connections` asks again as soon as it has its answer. open: requests come at
    `rate_per_s`, whether answers come or not, over at most `connections`; what finds none free waits
    and its waiting counts. held: each connection asks once, for a stream that lasts. flash: all connections ask in one
    instant, and again when all have their answers.
    `text` is what the answer must be, if that is known.
    """

    name: str
    shape: Literal["closed", "open", "held", "flash"]
    connections: int
    tokens: int
    stream: bool
    prompt: Prompt
    rate_per_s: float = 0.0
    text: str | None = None
    most: int = 0
    """A closed flow ends after so many requests, and counts from its first one; 0: not before it is stopped."""
    model: str = ""
    """Which model is asked, if not the job's."""
    api: Api = "chat"
    gaps: bool = False
    """Whether all times between two arrivals of tokens are told."""
    kept: bool = False
    """Whether those who ask in one instant are connected before it, and stay so."""
    process: int | None = None
    """The client process that has it alone, counted from 0 and around; None: all of them share it."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Target address, flows and API key of a job. `spread_s` is the time over which connections
    start.
    """

    host: str
    port: int
    model: str
    flows: tuple[Flow, ...]
    spread_s: float = 0.0
    seed: int = 0
    key: str = ""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """start: begin a job. open, close: the borders of what is measured. stop: end the job."""

    do: Literal["start", "open", "close", "stop"]
    job: Job | None = None


class Tally(msgspec.Struct, kw_only=True):
    """Results of a flow; times in seconds, of requests that ended inside the borders."""

    requests: int = 0
    tokens: int = 0
    errors: int = 0
    prompt_tokens: int = 0
    """Tokens of all prompts of `requests`."""
    careful: int = 0
    unsent: int = 0
    """Requests of an open loop that found its queue full."""
    problems: list[str] = []
    ttft: list[float] = []
    tpot: list[float] = []
    latency: list[float] = []
    gap: float = 0.0
    """The longest time between two tokens of a stream, in seconds."""
    asking: list[float] = []
    """From the instant of a crowd until a request of it had left the client."""
    crowds: int = 0
    """Crowds that began inside the borders."""
    gaps: list[float] = []
    """Times between two arrivals of tokens inside the borders, in seconds, or a fair sample of them."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a command; with tallies by the flow's name after close and stop."""

    did: str
    tallies: dict[str, Tally] = {}
    problem: str = ""
