"""Call plan: splits a request into engine calls (legs), with the streams that read their answers.

Everything is checked here, before the first call is made, so that a refusal has its real status.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from smg_node.core.generation.events import UNSAID, Begin
from smg_node.core.generation.request import (
    GenerateRequest,
    Prompt,
    Sampling,
    TokenIds,
)
from smg_node.engines.contracts.sampling_rules import refusals
from smg_node.engines.engine import Abilities
from smg_node.fleet.models.served_model import ServedModel
from smg_node.parsers.constraints.output_constraint import Forced
from smg_node.parsers.reading.parser import Parser
from smg_node.parsers.reading.piece_writer import NewId
from smg_node.pipeline.prompt.preparation import Prepared
from smg_node.pipeline.prompt.prompt_fit import check_able, fit
from smg_node.pipeline.prompt.request_bounds import (
    RequestBounds,
    SamplingBounds,
    request_bounds,
    sampling_bounds,
)
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.stream.call_constraint import ConstraintCheck, forced
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.generation_stream import AnyStream, Echo, GenerationStream
from smg_node.pipeline.stream.output_reader import (
    PROMPT_TAIL,
    OutputReader,
    bare_parser,
    output_reader,
)
from smg_node.pipeline.stream.plain_choice import PlainStream, WholeStream
from smg_node.tokens.tokenizer import Detokenizer

if TYPE_CHECKING:
    # Loaded with the first picture.
    from smg_node.pipeline.media.prompt_media import PromptMedia

SEED_BITS: Final = 63


class Leg(msgspec.Struct, frozen=True, gc=False):
    """One engine call: `count` answers to one prompt, the first of them choice `first`.

    The last `done` of the ids are not prompt but answer: an earlier call broke after them, and this
    one continues. `packed` are the ids as varints, None where they are not packed yet. `media` are the pictures of
    the prompt.
    """

    first: int
    count: int
    ids: TokenIds
    sampling: Sampling
    done: int = 0
    packed: bytes | None = None
    media: "PromptMedia | None" = None


class Plan(msgspec.Struct):
    """All legs of a request and their common event stream. Not changed after it is made for its
    request.

    `ignored` names parameters that these engines cannot honour and whose loss changes nothing
    important.
    """

    legs: Sequence[Leg]
    story: GenerationStream
    ignored: tuple[str, ...]
    beyond: int
    """No id from here on can be meant by an engine of the card that this was planned for."""
    keeping: ConstraintCheck | None = None
    """Who looks whether answers kept to what their engine cannot be held to; None where there is nothing of the kind."""


class _Answering(msgspec.Struct):
    """How one prompt is answered."""

    prompt: Prepared
    ids: TokenIds
    sampling: Sampling
    told: Forced
    listener: OutputReader


def plan(
    request: GenerateRequest,
    prepared: Sequence[Prepared],
    model: ServedModel,
    hold: Reservation,
    *,
    generation_id: str,
    created_s: int,
    new_id: NewId,
    silent: bool = False,
    scored: bool = False,
) -> Plan:
    """Return the plan for engines like `hold`'s; INVALID_REQUEST if one of them would reject it.

    A `silent` one may have a stream that yields no events before its end. Log probabilities of a `scored` one
    are for all ids of its answers, if any are wanted.
    """
    drawn = None
    if request.alike:
        drawn = sampling_bounds(model, hold.card, request.sampling, hold.abilities)
    prompt = prepared[0]
    ids = prompt.ids
    # One that a template was asked too much for has something to tell.
    if drawn is None or not 0 < len(ids) <= drawn.longest or prompt.ignored:
        return _planned(request, prepared, model, hold, generation_id, created_s, new_id, scored)
    # It differs from one before it in its prompt only.
    terms, sampling, ends = drawn.terms, drawn.sampling, drawn.ends
    tokenizer, plain, whole = terms.tokenizer, None, None
    begin = Begin(
        generation_id,
        request.model,
        created_s,
        len(ids),
        terms.fingerprint,
        drawn.temperature,
        drawn.top_p,
    )
    detokenizer = tokenizer.detokenizer(
        prompt_tail=ids[-PROMPT_TAIL:],
        skip_special_tokens=drawn.skips,
        spaces_between_special_tokens=sampling.spaces_between_special_tokens,
    )
    stream: AnyStream
    if drawn.reads:
        parser = bare_parser(terms.printing, prompt.text, sampling, new_id)
        stream = _read(drawn, detokenizer, parser, whole=not request.stream)
    elif silent:
        stream = whole = WholeStream(
            0, ends, ends.any, drawn.most, sampling.keep_stop, detokenizer, True
        )
    else:
        stream = plain = PlainStream(
            0, ends, ends.any, drawn.most, sampling.keep_stop, detokenizer, not request.stream
        )
    story = GenerationStream(
        begin, (stream,), 1, tokenizer, (), stream, plain, whole, whole is not None
    )
    leg = Leg(0, 1, ids, drawn.asked, 0, prompt.packed or None)
    return Plan((leg,), story, drawn.ignored, terms.beyond)


def _read(
    drawn: SamplingBounds, detokenizer: Detokenizer, parser: Parser, *, whole: bool
) -> ChoiceStream:
    return ChoiceStream(
        0,
        sampling=drawn.sampling,
        ends=drawn.ends,
        tokenizer=drawn.terms.tokenizer,
        detokenizer=detokenizer,
        parser=parser,
        whole=whole,
    )


def _planned(
    request: GenerateRequest,
    prepared: Sequence[Prepared],
    model: ServedModel,
    hold: Reservation,
    generation_id: str,
    created_s: int,
    new_id: NewId,
    scored: bool,
) -> Plan:
    """Return a plan made from scratch."""
    sampling, terms, abilities = request.sampling, request_bounds(model, hold.card), hold.abilities
    ignored = check_able(sampling, refusals(sampling, abilities))
    answering = [
        _answering(wanted, prompt, request, terms, hold, new_id)
        for wanted, prompt in zip(request.prompts, prepared, strict=True)
    ]
    drawn_so = answering[0].sampling
    answers = sampling.n
    streams = _streams(answering, answers, terms, whole=not request.stream, scored=scored)
    echoes = _echoes(request, answering, model)
    assert len(streams) == len(answering) * answers
    assert not echoes or len(echoes) == len(answering)
    alone = streams[0] if len(streams) == 1 and not echoes else None
    story = GenerationStream(
        Begin(
            generation_id,
            request.model,
            created_s,
            sum([len(each.ids) for each in answering]),
            terms.fingerprint,
            UNSAID if drawn_so.temperature is None else drawn_so.temperature,
            UNSAID if drawn_so.top_p is None else drawn_so.top_p,
            _room(sampling.max_tokens, drawn_so.max_tokens),
        ),
        streams,
        answers,
        terms.tokenizer,
        echoes,
        alone,
        alone if type(alone) is PlainStream else None,
        rows_due=sampling.prompt_logprobs is not None,
        image_tokens=sum([0 if each.media is None else each.media.tokens for each in prepared]),
    )
    native_n = answers > 1 and _does_n(sampling, hold)
    legs = _legs(answering, answers, native_n=native_n)
    planned = _with_told(Plan(legs, story, ignored, terms.beyond), answering, answers)
    if request.alike and terms.trusted and planned.keeping is None:
        _keep(planned, answering[0], request, terms, abilities)
    return planned


def _room(wanted: int | None, most: int | None) -> int | None:
    """Return how long an answer may be, if that is shorter than was asked for."""
    return most if wanted is not None and most is not None and most < wanted else None


def _keep(
    planned: Plan,
    each: _Answering,
    request: GenerateRequest,
    terms: RequestBounds,
    abilities: Abilities,
) -> None:
    """Cache the plan's bounds for later requests with equal sampling, if every parameter was
    honoured.
    """
    wished, sampling = request.sampling, each.sampling
    if wished.n != 1 or wished.max_tokens is None or sampling.max_tokens != wished.max_tokens:
        return
    terms.keep(
        SamplingBounds(
            terms,
            wished,
            abilities,
            sampling,
            planned.legs[0].sampling,
            terms.ends(sampling, each.listener.ends),
            each.listener.reads,
            planned.ignored,
            terms.room(wished),
            wished.max_tokens,
            sampling.skip_special_tokens and not each.listener.reads,
            UNSAID if sampling.temperature is None else sampling.temperature,
            UNSAID if sampling.top_p is None else sampling.top_p,
        )
    )


def _answering(
    wanted: Prompt,
    prompt: Prepared,
    request: GenerateRequest,
    terms: RequestBounds,
    hold: Reservation,
    new_id: NewId,
) -> _Answering:
    sampling, printing = request.sampling, terms.printing
    told = forced(wanted, prompt.text, printing, sampling, hold.card, hold.abilities)
    ids, fitted = fit(prompt, request, terms, told.constraint)
    listener = output_reader(
        wanted,
        told.tail or prompt.text,
        printing,
        sampling,
        terms.tokenizer,
        new_id,
        expect=told.expect,
        named=told.named,
        stops=terms.stops,
    )
    return _Answering(prompt, ids, fitted, told, listener)


def _streams(
    answering: Sequence[_Answering],
    answers: int,
    terms: RequestBounds,
    *,
    whole: bool,
    scored: bool,
) -> list[AnyStream]:
    streams: list[AnyStream] = []
    for each in answering:
        ends = terms.ends(each.sampling, each.listener.ends)
        for _ in range(answers):
            listener, sampling = each.listener, each.sampling
            at, ids = len(streams), each.ids
            streams.append(listener.stream(at, sampling, ids, ends, whole=whole, scored=scored))
    return streams


def _with_told(planned: Plan, answering: Sequence[_Answering], answers: int) -> Plan:
    """Return the plan with the checks of what templates and grammars cannot promise."""
    unheard = [name for each in answering if each.prompt.ignored for name in each.prompt.ignored]
    unheard += [name for each in answering if each.told.ignored for name in each.told.ignored]
    if unheard:
        planned.ignored = tuple(dict.fromkeys((*planned.ignored, *unheard)))
    if any(each.told.unheld for each in answering):
        planned.keeping = ConstraintCheck(
            [each.told.unheld for each in answering for _ in range(answers)]
        )
    return planned


def _does_n(sampling: Sampling, hold: Reservation) -> bool:
    """Whether the engine gives several answers in one call; vLLM refuses to when sampling is
    greedy.
    """
    temperature = sampling.temperature
    if temperature is None:
        temperature = hold.card.sampling_defaults.get("temperature")
    return hold.abilities.native_n and temperature != 0


def _legs(answering: Sequence[_Answering], answers: int, *, native_n: bool) -> list[Leg]:
    legs: list[Leg] = []
    for number, each in enumerate(answering):
        asked, first = each.listener.asked(each.sampling), number * answers
        # Ids that were cut are others than those that were packed.
        packed, media = (
            each.prompt.packed if each.ids is each.prompt.ids else b"",
            each.prompt.media,
        )
        if native_n or answers == 1:
            legs.append(Leg(first, answers, each.ids, asked, 0, packed or None, media))
        else:
            legs += [
                Leg(first + one, 1, each.ids, _one_of(asked, one), 0, packed or None, media)
                for one in range(answers)
            ]
    return legs


def _one_of(sampling: Sampling, number: int) -> Sampling:
    """Return the sampling of answer `number` alone: the same seed would give the same answer n times."""
    seed = sampling.seed
    if seed is not None and number:
        seed = (seed + number) & ((1 << SEED_BITS) - 1)
    return replace(sampling, n=1, seed=seed)


def _echoes(
    request: GenerateRequest, answering: Sequence[_Answering], model: ServedModel
) -> Sequence[Echo]:
    wanted = request.echo or request.prompt_ids or request.sampling.prompt_logprobs is not None
    if not wanted:
        return ()
    echoes = []
    for each in answering:
        ids, prompt = each.ids, each.prompt
        whole = prompt.text and len(ids) == len(prompt.ids)
        text = prompt.text if whole else model.tokenizer.decode(ids, skip_special_tokens=False)
        echoes.append(Echo(text if request.echo else "", tuple(ids)))
    return echoes
