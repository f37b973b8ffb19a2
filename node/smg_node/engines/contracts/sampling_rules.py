"""Sampling rules: defaults and seeds handled alike for every contract, and the options that a
contract cannot fulfil. Pure.

Nothing is dropped silently: `refusals` names each wish that an engine of these abilities cannot fulfil.
A fatal one would change the meaning or the safety of the answer and is refused by the pipeline; the
others are hints, whose loss the client is told about.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from smg_node.core.generation.request import Sampling
from smg_node.engines.engine import Abilities

SEED_31_BITS: Final = 0x7FFF_FFFF
SEED_64_BITS: Final = 0xFFFF_FFFF_FFFF_FFFF
LOGPROB_UNKNOWN: Final = -9999.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A wish that cannot be fulfilled: the name of the `Sampling` field, and how bad that is."""

    field: str
    fatal: bool
    message: str


def refusals(sampling: Sampling, abilities: Abilities) -> list[Refusal]:
    """Return what an engine of these abilities cannot do of `sampling`, in order of field names.

    Stop strings and n never appear: the pipeline matches stop strings itself and fans n out.
    """
    found: list[Refusal] = []

    def refuse(field: str, why: str, *, fatal: bool = True) -> None:
        found.append(Refusal(field, fatal, why))

    if sampling.adapter is not None and not abilities.adapters:
        refuse("adapter", "this engine cannot choose an adapter per request")
    constraint = sampling.constraint
    if constraint is not None and constraint.kind not in abilities.constraints:
        why = f"this engine cannot constrain its output by {constraint.kind}"
        refuse("constraint", why, fatal=constraint.strict)
    if _penalties(sampling) and not abilities.penalties:
        refuse("frequency_penalty", "this engine has no penalties")
    if sampling.logit_bias and not abilities.logit_bias:
        refuse("logit_bias", "this engine cannot bias tokens")
    if sampling.logprobs is not None and sampling.logprobs > abilities.logprobs_max:
        refuse("logprobs", f"this engine gives at most {abilities.logprobs_max} log probabilities")
    if sampling.min_tokens > 0 and not abilities.min_tokens:
        refuse("min_tokens", "this engine cannot promise a least number of tokens")
    if sampling.prompt_logprobs is not None:
        if not abilities.prompt_logprobs:
            refuse("prompt_logprobs", "this engine gives no log probabilities of the prompt")
        elif sampling.prompt_logprobs > abilities.logprobs_max:
            refuse(
                "prompt_logprobs",
                f"this engine gives at most {abilities.logprobs_max} log probabilities",
            )
    if sampling.seed is not None and not abilities.seed:
        # The client asked for repeatability at best effort; OpenAI's own wording promises no more.
        refuse("seed", "this engine takes no seed", fatal=False)
    return found


def _penalties(sampling: Sampling) -> bool:
    return bool(
        sampling.frequency_penalty
        or sampling.presence_penalty
        or sampling.repetition_penalty not in (None, 1.0)
    )


def with_defaults(sampling: Sampling, defaults: Mapping[str, float]) -> Sampling:
    """Return `sampling` with the model's own defaults where the client said nothing."""
    unset: dict[str, Any] = {
        name: int(value) if name == "top_k" else value
        for name, value in defaults.items()
        if getattr(sampling, name) is None
    }
    return replace(sampling, **unset) if unset else sampling


def clean_defaults(raw: object) -> dict[str, float]:
    """Return the believable part of what an engine says are the model's sampling defaults.

    Anything that is not a number in the range of its name is left out; garbage gives nothing.
    """
    if not isinstance(raw, dict):
        return {}
    found: dict[str, float] = {}
    for name, low, high in _RANGES:
        value = raw.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
            found[name] = float(value)
    if found.get("top_p") == 0.0:
        del found["top_p"]
    if found.get("repetition_penalty") == 0.0:
        del found["repetition_penalty"]
    return found


_RANGES: Final = (
    ("temperature", 0.0, 100.0),
    ("top_p", 0.0, 1.0),
    ("top_k", -1.0, 2.0**31 - 1),
    ("min_p", 0.0, 1.0),
    ("repetition_penalty", 0.0, 100.0),
)


def folded_seed(seed: int) -> int:
    """Return `seed` as 31 bits for contracts whose seed is a signed 32-bit integer.

    Seeds that fit are kept as they are, so that they mean what they mean on the engine's own API; in
    others every bit counts. Never negative: one engine reads -1 as "no seed", another fails on it.
    """
    wide = seed & SEED_64_BITS
    return (wide ^ (wide >> 31) ^ (wide >> 62)) & SEED_31_BITS


def known_logprob(value: float) -> float:
    """Return a log probability that JSON can carry: not-a-number and infinity become -9999.0."""
    return value if math.isfinite(value) else LOGPROB_UNKNOWN
