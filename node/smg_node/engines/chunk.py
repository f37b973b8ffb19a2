"""Chunk: one normalised message of an engine's stream, the same for every contract."""

from typing import Literal, TypeAlias

import msgspec

EngineFinish: TypeAlias = Literal["stop", "stop_sequence", "length", "abort"]


class IdLogprob(msgspec.Struct, frozen=True, gc=False):
    """A token's log probability (None: not defined there) and its best alternatives (id, logprob)."""

    token_id: int
    logprob: float | None
    top: tuple[tuple[int, float], ...] = ()


class Chunk(msgspec.Struct, gc=False):
    """New ids of one choice, and possibly its end.

    `ids` is always a delta: each id of the answer comes exactly once, in order, also those of an
    engine that answers with one complete message or repeats its last delta. End-of-text and stop ids
    are still in it; the reader strips them. `logprobs` is empty or as long as `ids`.
    `prompt_tokens` and `cached_tokens` are -1 where the message does not say. `finish` ends the
    choice; `matched` is what stopped it, where the engine tells.
    """

    choice: int
    ids: tuple[int, ...]
    logprobs: tuple[IdLogprob, ...] = ()
    finish: EngineFinish | None = None
    matched: int | str | None = None
    prompt_tokens: int = -1
    cached_tokens: int = -1
    prompt_logprobs: tuple[IdLogprob, ...] = ()
    apart: bool = False
    """Whether its ids came each in a message of its own, with nothing else new in any: one wake-up's, kept together."""
