"""Which engine calls a request needs, and the machines that will read them.

Everything is checked here, before the first call is made, so that a refusal has its real status.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from smg_node.core.events import UNSAID, Begin
from smg_node.core.request import GenerateRequest, Sampling, TokenIds
from smg_node.engines.sampling import refusals, with_defaults
from smg_node.fleet.model import ServedModel
from smg_node.parsers.parser import Plain
from smg_node.pipeline.hold import Hold
from smg_node.pipeline.prepare import Prepared, check_able, fit
from smg_node.pipeline.story import Echo, Story
from smg_node.pipeline.stream import ChoiceStream, Ends, ends_of

PROMPT_TAIL: Final = 8
"""Ids before the answer that a detokenizer may look at, see `tokens.tokenizer`."""
SEED_BITS: Final = 63


@dataclass(frozen=True, slots=True)
class Leg:
    """One engine call: `count` answers to one prompt, the first of them choice `first`.

    `done` of the ids are not prompt but answer: an earlier call broke after them, and this one goes on.
    """

    first: int
    count: int
    ids: TokenIds
    sampling: Sampling
    done: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """All legs of a request and the story they tell together.

    `ignored` names the wishes these engines cannot fulfil and whose loss changes nothing important.
    """

    legs: Sequence[Leg]
    story: Story
    ignored: tuple[str, ...]


def plan(
    request: GenerateRequest,
    prepared: Sequence[Prepared],
    model: ServedModel,
    hold: Hold,
    *,
    generation_id: str,
    created_s: int,
) -> Plan:
    """Return the plan for engines like `hold`'s; INVALID_REQUEST if one of them would object."""
    ignored = check_able(request.sampling, refusals(request.sampling, hold.abilities))
    fitted = [_fitted(prompt, request, model, hold) for prompt in prepared]
    begin = Begin(
        id=generation_id,
        model=request.model,
        created_s=created_s,
        prompt_tokens=sum(len(ids) for ids, _ in fitted),
        fingerprint=model.fingerprint(hold.card),
        temperature=_effective(fitted[0][1].temperature),
        top_p=_effective(fitted[0][1].top_p),
    )
    ends = ends_of(request.sampling, model.tokenizer, hold.card.eos_ids)
    answers = request.sampling.n
    story = Story(
        begin,
        [
            _choice(number * answers + one, model, sampling, ids, ends)
            for number, (ids, sampling) in enumerate(fitted)
            for one in range(answers)
        ],
        answers_per_prompt=answers,
        tokenizer=model.tokenizer,
        echoes=_echoes(request, prepared, fitted, model),
    )
    legs = _legs(fitted, answers, native_n=_does_n(request.sampling, hold))
    return Plan(legs, story, ignored)


def _fitted(
    prompt: Prepared, request: GenerateRequest, model: ServedModel, hold: Hold
) -> tuple[TokenIds, Sampling]:
    """Return ids and sampling, with what the model's makers recommend filled in.

    The engine would do so itself; but an answer that goes on elsewhere must be drawn as it began.
    """
    ids, sampling = fit(prompt, request, model, hold.card)
    return ids, with_defaults(sampling, hold.card.sampling_defaults)


def _effective(said: float | None) -> float:
    """Return what engines draw with where neither the client nor the model's makers say anything."""
    return UNSAID if said is None else said


def _does_n(sampling: Sampling, hold: Hold) -> bool:
    """Whether the engine gives several answers in one call; vLLM refuses to when sampling is greedy."""
    temperature = sampling.temperature
    if temperature is None:
        temperature = hold.card.sampling_defaults.get("temperature")
    return hold.abilities.native_n and temperature != 0


def _legs(
    fitted: Sequence[tuple[TokenIds, Sampling]], answers: int, *, native_n: bool
) -> list[Leg]:
    if native_n or answers == 1:
        return [
            Leg(number * answers, answers, ids, sampling)
            for number, (ids, sampling) in enumerate(fitted)
        ]
    return [
        Leg(number * answers + one, 1, ids, _one_of(sampling, one))
        for number, (ids, sampling) in enumerate(fitted)
        for one in range(answers)
    ]


def _one_of(sampling: Sampling, number: int) -> Sampling:
    """Return the sampling of answer `number` alone: the same seed would give the same answer n times."""
    seed = sampling.seed
    if seed is not None and number:
        seed = (seed + number) & ((1 << SEED_BITS) - 1)
    return replace(sampling, n=1, seed=seed)


def _choice(
    choice: int, model: ServedModel, sampling: Sampling, ids: TokenIds, ends: Ends
) -> ChoiceStream:
    tokenizer = model.tokenizer
    return ChoiceStream(
        choice,
        sampling=sampling,
        ends=ends,
        tokenizer=tokenizer,
        detokenizer=tokenizer.detokenizer(
            prompt_tail=ids[-PROMPT_TAIL:],
            skip_special_tokens=sampling.skip_special_tokens,
            spaces_between_special_tokens=sampling.spaces_between_special_tokens,
        ),
        parser=Plain(),
    )


def _echoes(
    request: GenerateRequest,
    prepared: Sequence[Prepared],
    fitted: Sequence[tuple[TokenIds, Sampling]],
    model: ServedModel,
) -> list[Echo]:
    wanted = request.echo or request.prompt_ids or request.sampling.prompt_logprobs is not None
    if not wanted:
        return []
    echoes = []
    for prompt, (ids, _) in zip(prepared, fitted, strict=True):
        whole = prompt.text and len(ids) == len(prompt.ids)
        text = prompt.text if whole else model.tokenizer.decode(ids, skip_special_tokens=False)
        echoes.append(Echo(text if request.echo else "", tuple(ids)))
    return echoes
