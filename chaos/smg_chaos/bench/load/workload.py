"""Workload: what one of the benchmark's loads is, and what its options are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from smg_chaos.bench.load.job import Api, Flow, Prompt
from smg_chaos.bench.load.script import Spoken
from smg_chaos.bench.options import ToolLoad

STREAMS: Final = "streams"
"""The flow of paced streams beside others."""
STEP_MS: Final = 20
"""From one token of a paced stream to the next, if nothing else is said."""

# Prompts of one round are numbered from a multiple of this.
ROUND: Final = 10_000_000

Unit: TypeAlias = Literal["request", "token", "first token", "gap"]
Behind: TypeAlias = Literal["engine", "halves", "pair", "vendor", "tools"]
"""What gateways stand in front of: a simulated engine, one that takes bfloat16 of pictures, two of which one sees
pictures, the stand-in of a vendor's API, or engines and a server of tools."""


@dataclass(frozen=True, slots=True)
class Load:
    """Load options of the command line. `spread_s` is the time over which held streams start."""

    clients: int = 32
    rate_per_s: float = 0.0
    held_s: float = 0.0
    round: int = 0
    long_sizes: tuple[int, ...] = ()
    tools: ToolLoad = field(default_factory=ToolLoad)


Flows: TypeAlias = Callable[[Load, Spoken | None], Sequence[Flow]]


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload. `less` is another one whose cost per request is taken off before dividing by
    tokens; `first` is the flow whose time to the first token is reported.
    """

    name: str
    says: str
    unit: Unit
    flows: Flows
    paced: bool = False
    less: str = ""
    first: str = "main"
    longer: int = 1
    """It counts for so many times as long as others: what is rare needs time to be seen often."""
    least_s: float = 0.0
    """It counts for so long at least, however short others are: what has an end of its own has to come to it."""
    added: bool = False
    """Whether the time to the first token is counted without what the engine alone takes."""
    behind: Behind = "engine"
    sees: bool = False
    """Whether the engine has to serve a model that sees pictures."""
    step_ms: int = STEP_MS
    """From one token of a paced stream to the next."""
    beside: str = ""
    """The same workload without what is asked about here, whose gaps between tokens its own are compared with."""
    companion: str = ""
    """The flow beside its streams that is asked about."""
    runs_per_s: float = 0.0
    """Runs of tools a second that are wanted beside its streams."""
    crowd: str = ""
    """The flow whose requests all begin in one instant, again and again."""
    clients_min: int = 1
    """Client processes that it needs: what one reads must not hold up what another measures."""


def closed_flow(
    load: Load,
    script: Spoken | None,
    prompt: Prompt,
    *,
    tokens: int,
    stream: bool,
    name: str = "main",
    connections: int | None = None,
    api: Api = "chat",
) -> Flow:
    """Return a flow in a closed loop, or in an open one if a rate was asked for."""
    return Flow(
        name=name,
        shape="open" if load.rate_per_s and connections is None else "closed",
        connections=connections or load.clients,
        tokens=tokens,
        stream=stream,
        prompt=prompt,
        rate_per_s=load.rate_per_s,
        text=None if script is None else script.text(tokens),
        api=api,
    )


def first_prompt(load: Load) -> int:
    """Return the number of the first prompt of a round."""
    return (load.round + 1) * ROUND


def held_flow(
    load: Load,
    script: Spoken | None,
    streams: int,
    name: str,
    api: Api = "chat",
    *,
    step_ms: int = STEP_MS,
) -> Flow:
    """Return streams that are held open for longer than is measured."""
    tokens = max(2, int(load.held_s * 1000 / step_ms))
    return Flow(
        name=name,
        shape="held",
        connections=streams,
        tokens=tokens,
        stream=True,
        prompt=Prompt(kind="short", first=first_prompt(load)),
        text=None if script is None else script.text(tokens),
        api=api,
    )
