"""Roles in the failover scenario: engines that answer alone, or pairs of them, and the harm done to
each.

A cast has engines with flags of their own, flags for the nodes, the questions, and how often each
harm is done to which of its engines. `alone` has engines of two contracts; a stream may continue at
one of the other kind. In `pairs` the same two contracts have engines for prompts and engines for
answers: SGLang's meet in rooms, vLLM's hand over by what the first one returns. Engines for prompts
are so slow that prompts queue when one of them is hurt, and they keep nothing, so that each round
computes all of them again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from smg_chaos.gameday.agents.engine_pool import MODEL

Kind: TypeAlias = Literal["kill", "stall", "removal"]
Role: TypeAlias = Literal["regular", "prefill", "decode"]

STALL_S: Final = 2.0
"""How long a node of this scenario bears a silent engine that has begun to answer."""
_PATIENCE_S: Final = 5.0
"""How long it bears one of a pair that is silent from the start: a prompt may stand in line for that long."""
_WORK_S: Final = 1.5
"""How long the engines of a cast take for all prompts."""
_CALLS: Final = 1.25
"""Pairs of calls a stream: of four, one has two choices."""
_PROMPT_TOKENS: Final = 600
"""About."""
_MOVE_S: Final = 1.0
QUEUE_S: Final = 2.5
"""How long a prompt may stand in line once more, when its worker is lost and the others have all of its work."""
_TOKENS: Final = 100
_FIRST_ROOM: Final = 61300
_PACE: Final = ("--itl-ms", "20", "--script", "following", "--slots", "256", "--blocks", "4096")
_LONG: Final = " Once upon a time there was an engine." * 31


@dataclass(frozen=True, slots=True)
class Harm:
    """A kind of harm, and the role of the engine it is done to."""

    kind: Kind
    role: Role = "regular"

    @property
    def name(self) -> str:
        """Its name in figures."""
        return self.kind if self.role == "regular" else f"{self.kind} of a {self.role} engine"


@dataclass(frozen=True, slots=True)
class Part:
    """One engine: its role, and the flags of `smg-chaos engine`."""

    role: Role
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """Engines, flags for the nodes beside those of the scenario, and the text that makes each
    prompt long.

    `shares` has for each harm how many of a hundred rounds it gets beside, or as a part of, its
    kind's. `patience_s` is the nodes' timeout for an engine that is silent from the start.
    """

    name: str
    parts: tuple[Part, ...]
    shares: Mapping[Harm, int]
    patience_s: float
    flags: tuple[str, ...] = ()
    filler: str = ""

    def often(self, rounds: int) -> dict[Harm, int]:
        """Return how often each harm is done when there are so many rounds; each is, at least once."""
        return {harm: max(1, rounds * share // 100) for harm, share in self.shares.items()}

    def silence_s(self, harm: Harm) -> float:
        """Return how long a stream whose worker is hurt may be silent.

        Before pairs, whatever a stream has so far queues as a prompt once more.
        """
        bears_s = self.patience_s if harm.role == "prefill" else STALL_S
        in_line_s = 0.0 if harm.role == "regular" else QUEUE_S
        return _MOVE_S + in_line_s + (bears_s if harm.kind == "stall" else 0.0)


def questions(count: int, filler: str = "") -> list[dict[str, Any]]:
    """Return the questions of the streams, all different, in four kinds."""
    more: tuple[dict[str, Any], ...] = ({}, {"n": 2}, {"logprobs": True, "top_logprobs": 2}, {})
    return [
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": f"Question number {number}?{filler}"}],
            "max_tokens": _TOKENS,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **more[number % len(more)],
        }
        for number in range(count)
    ]


def _alone(_: int) -> Cast:
    makes: Sequence[tuple[str, ...]] = (
        ("--contract", "vllm"),
        ("--contract", "sglang"),
        ("--contract", "vllm", "--servicer", "rust"),
        ("--contract", "sglang"),
    )
    return Cast(
        "alone",
        tuple(Part("regular", (*make, *_PACE)) for make in makes),
        {Harm("kill"): 100, Harm("stall"): 20, Harm("removal"): 20},
        STALL_S,
        ("--engine.first-event-s", str(STALL_S)),
    )


def _pairs(streams: int) -> Cast:
    room = iter(range(_FIRST_ROOM, _FIRST_ROOM + 16))
    per_engine = streams * _CALLS * _PROMPT_TOKENS / 4
    speed = ("--prefill-tokens-per-s", str(round(per_engine / _WORK_S)))
    parts: list[Part] = []
    for contract in ("sglang", "vllm"):
        make = ("--contract", contract, *_PACE)
        for _ in range(2):
            opens = ("--bootstrap-port", str(next(room)), "--no-cache")
            parts.append(Part("prefill", (*make, "--role", "prefill", *opens, *speed)))
        parts += [Part("decode", (*make, "--role", "decode"))] * 2
    return Cast(
        "pairs",
        tuple(parts),
        {
            Harm("kill", "decode"): 50,
            Harm("kill", "prefill"): 50,
            Harm("stall", "decode"): 10,
            Harm("stall", "prefill"): 10,
            Harm("removal", "decode"): 10,
            Harm("removal", "prefill"): 10,
        },
        _PATIENCE_S,
        ("--engine.first-event-s", str(_PATIENCE_S)),
        _LONG,
    )


CASTS: Final[Mapping[str, Callable[[int], Cast]]] = {"alone": _alone, "pairs": _pairs}
"""By topology: who plays for so many streams."""
