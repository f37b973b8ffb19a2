"""Continuation of broken calls on another engine, without repeating or losing a token. Pure.

The next engine is sent the prompt and behind it every id the client's answer has so far, and is
allowed as many ids fewer. Its output is fed to the same `ChoiceStream`, so nothing is detokenized,
matched or parsed twice. Each unfinished answer becomes a call of its own: they have different ids
behind the prompt.

Exact where the next id follows from the ids before it. Two things the new engine does not know of
what it is sent: that part of it was drawn (penalties see it as prompt), and where a grammar stands
(it would begin at its start). The first only changes which tokens are drawn, like sampling itself;
the second would make a wrong answer, so a constrained answer is not continued. The exception is a
choice between texts: its rest is a choice again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec
from msgspec import structs

from smg_node.core.generation.request import Constraint, Sampling, TokenIds
from smg_node.pipeline.generation.call_plan import SEED_BITS, Leg
from smg_node.pipeline.stream.generation_stream import GenerationStream
from smg_node.tokens.tokenizer import Tokenizer

_SEED_MASK: Final = (1 << SEED_BITS) - 1


class CannotGoOnError(Exception):
    """An answer that no other engine can continue; the message tells the client why."""


def rest_of(
    leg: Leg, story: GenerationStream, tokenizer: Tokenizer, *, prompt_max: int | None
) -> Sequence[Leg]:
    """Return the calls that finish what is unfinished of `leg`, a call that broke; none if nothing
    is.

    A call without any token is simply made again. CannotGoOnError where the rest cannot be had
    exactly.
    """
    streams = [story.stream(leg.first + at) for at in range(leg.count)]
    if not any(len(stream.ids) > leg.done or stream.over for stream in streams):
        return (leg,)
    return [
        _rest(leg, at, stream.ids[leg.done :], tokenizer, prompt_max)
        for at, stream in enumerate(streams)
        if not stream.over
    ]


def remarks(sampling: Sampling) -> str:
    """Return notes for the operator on a continued answer: where it may not be the same draw."""
    said = []
    if sampling.temperature != 0:
        said.append("the rest is another draw")
    if (
        sampling.frequency_penalty
        or sampling.presence_penalty
        or sampling.repetition_penalty not in (None, 1.0)
    ):
        said.append("penalties take what was said for prompt")
    return "; ".join(said)


def _rest(leg: Leg, at: int, new: TokenIds, tokenizer: Tokenizer, prompt_max: int | None) -> Leg:
    """Return the call that finishes answer `at` of `leg`, after the ids `new` of this call."""
    ids = leg.ids + new
    if prompt_max is not None and len(ids) > prompt_max:
        raise CannotGoOnError(
            f"prompt and answer have {len(ids)} tokens, and a prompt may have {prompt_max}"
        )
    return Leg(
        first=leg.first + at,
        count=1,
        ids=ids,
        sampling=_sampling(leg.sampling, at, new, tokenizer),
        done=leg.done + len(new),
        media=leg.media,
    )


def _sampling(sampling: Sampling, at: int, new: TokenIds, tokenizer: Tokenizer) -> Sampling:
    assert sampling.max_tokens is not None
    left = sampling.max_tokens - len(new)
    assert left > 0, "an answer of full length is over"
    seed = sampling.seed
    if seed is not None:
        # An engine that answers several times draws each of them differently; so do single calls.
        seed = (seed + at + len(new)) & _SEED_MASK
    constraint = sampling.constraint
    if new and constraint is not None:
        constraint = _rest_of_constraint(constraint, new, tokenizer)
    return structs.replace(
        sampling,
        n=1,
        max_tokens=left,
        min_tokens=max(0, sampling.min_tokens - len(new)),
        seed=seed,
        constraint=constraint,
        prompt_logprobs=None if new else sampling.prompt_logprobs,
    )


def _rest_of_constraint(constraint: Constraint, new: TokenIds, tokenizer: Tokenizer) -> Constraint:
    """Return the constraint on the rest of an answer, where the same kind of constraint can express
    it.
    """
    if constraint.kind != "choice":
        raise CannotGoOnError(f"no engine can take up a {constraint.kind} constraint in the middle")
    try:
        said = b"".join(tokenizer.token_bytes(token_id) for token_id in new).decode()
    except UnicodeDecodeError:
        raise CannotGoOnError("the answer broke off within a character of a choice") from None
    texts = msgspec.json.decode(constraint.value, type=list[str])
    rest = [text[len(said) :] for text in texts if text.startswith(said)]
    if not rest or not all(rest):
        raise CannotGoOnError("nothing is left to choose from")
    return replace(constraint, value=msgspec.json.encode(rest).decode())
