"""What engines are sent of a prompt: checked by terms that hold for their card, and packed where it was."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event
from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    Sampling,
    TextPrompt,
    Turn,
    token_ids,
)
from smg_node.engines.chunk import Chunk
from smg_node.fleet.models.format_recognition import Recognition
from smg_node.fleet.models.model_options import Labels, ModelSettings
from smg_node.fleet.models.served_model import ServedModel
from smg_node.native.token_ids import pack_ids
from smg_node.parsers.selection.recognition import Clues
from smg_node.pipeline.generation.call_plan import Plan, plan
from smg_node.pipeline.prompt.preparation import Prepared
from smg_node.pipeline.prompt.request_bounds import (
    CARDS_MAX,
    DRAWN_MAX,
    request_bounds,
    sampling_bounds,
)
from smg_node.pipeline.stream.end_tokens import ends_of
from smg_node.tokens.caches.cached_encoder import CachedEncoder
from support.engines.fake_engine import abilities, card
from support.models.bytewise_tokenizer import BytewiseTokenizer

CARD = card(context=100)
ABILITIES = abilities(native_n=True)
IDS = token_ids([1, 2, 200, 3])
PROMPT = Prepared(IDS, "text", "prompt", packed=pack_ids(IDS))


def served(*, reasoning: bool = False) -> ServedModel:
    recognition, tokenizer = Recognition(Clues(("tiny",))), BytewiseTokenizer()
    settings = ModelSettings(reasoning_parser="qwen3" if reasoning else None)
    return ServedModel(
        name="tiny",
        created_s=1,
        tokenizer=tokenizer,
        encoder=CachedEncoder(tokenizer),
        renderer=None,
        recognition=recognition,
        printing=recognition.printing(settings, Labels()),
        settings=settings,
        bundle_digest="d",
        bundle_context=None,
    )


def planned(prepared: Prepared, model: ServedModel | None = None, **said: Any) -> Plan:
    sampling = said.pop("sampling", Sampling(max_tokens=5))
    request = GenerateRequest("tiny", (TextPrompt(prepared.text),), sampling, False, **said)
    hold: Any = SimpleNamespace(card=CARD, abilities=abilities(native_n=True))
    return plan(
        request,
        [prepared],
        served() if model is None else model,
        hold,
        generation_id="a" * 32,
        created_s=1,
        new_id=lambda _name, at: f"call_{at}",
    )


def test_packed_ids_go_along_as_far_as_they_are_the_prompt() -> None:
    (leg,) = planned(PROMPT).legs
    assert (leg.ids, leg.packed) == (IDS, pack_ids(IDS))
    (cut,) = planned(PROMPT, truncate_prompt_tokens=2).legs
    assert (cut.ids, cut.packed) == (IDS[2:], None)
    (whole,) = planned(PROMPT, truncate_prompt_tokens=-1).legs
    assert whole.packed == pack_ids(IDS)
    (unpacked,) = planned(Prepared(IDS, "text", "prompt")).legs
    assert unpacked.packed is None


def test_a_request_that_asks_for_what_is_sent_is_sent_as_it_is() -> None:
    sampling = Sampling(max_tokens=5)
    (leg,) = planned(PROMPT, sampling=sampling).legs
    assert leg.sampling is sampling
    (open_ended,) = planned(PROMPT, sampling=Sampling()).legs
    assert open_ended.sampling == Sampling(max_tokens=96)


def test_terms_are_worked_out_once_and_again_when_the_model_changes() -> None:
    model = served()
    terms = request_bounds(model, CARD)
    assert request_bounds(model, CARD) is terms
    assert (terms.context, terms.prompt_max, terms.trusted) == (100, 99, True)
    assert terms.fingerprint == model.fingerprint(CARD)
    model.settings = ModelSettings(context=50)
    assert request_bounds(model, CARD).context == 50
    model.reprint(Labels(path="other"))
    again = request_bounds(model, CARD)
    assert again.printing is model.printing
    other = replace(CARD, context=10)
    assert request_bounds(model, other).context == 50
    assert request_bounds(model, CARD) is again


def test_no_more_cards_are_kept_than_may_be() -> None:
    model = served()
    cards = [replace(CARD, context=number) for number in range(10, CARDS_MAX + 30)]
    for number, one in enumerate(cards):
        assert request_bounds(model, one).context == 10 + number
        assert len(model.worked_out) <= CARDS_MAX


@given(
    st.booleans(),
    st.lists(st.integers(0, 300), max_size=3),
    st.frozensets(st.integers(0, 300), max_size=2),
)
def test_prepared_ends_are_those_that_are_worked_out(
    ignore_eos: bool, stops: list[int], read: frozenset[int]
) -> None:
    terms = request_bounds(served(), CARD)
    sampling = Sampling(ignore_eos=ignore_eos, stop_token_ids=tuple(stops))
    assert terms.ends(sampling, read) == ends_of(sampling, terms.tokenizer, CARD.eos_ids, read=read)


CHUNKS = (
    Chunk(0, tuple(b"<think>ab")),
    Chunk(0, tuple(b"c</think>d")),
    Chunk(0, (), finish="stop"),
)


def chat(sampling: Sampling, prepared: Prepared, model: ServedModel, **more: Any) -> Plan:
    request = GenerateRequest(
        "tiny", (ChatPrompt((Turn("user", "x"),)),), sampling, more.pop("stream", True), **more
    )
    hold: Any = SimpleNamespace(card=CARD, abilities=ABILITIES)
    return plan(
        request,
        [prepared],
        model,
        hold,
        generation_id="a" * 32,
        created_s=1,
        new_id=lambda _name, at: f"call_{at}",
    )


def events_of(planned: Plan) -> list[Event]:
    out: list[Event] = []
    for chunk in CHUNKS:
        planned.story.feed(0, chunk, out)
    planned.story.end(out)
    return out


@given(
    sampling=st.builds(
        Sampling,
        max_tokens=st.one_of(st.none(), st.integers(1, 60)),
        temperature=st.sampled_from([None, 0.0, 0.7]),
        top_p=st.sampled_from([None, 0.9]),
    ),
    lengths=st.lists(st.integers(1, 105), min_size=2, max_size=4),
    reasoning=st.booleans(),
    stream=st.booleans(),
)
def test_what_was_planned_before_is_planned_again(
    sampling: Sampling, lengths: list[int], reasoning: bool, stream: bool
) -> None:
    again, anew = served(reasoning=reasoning), served(reasoning=reasoning)
    for length in lengths:
        ids = token_ids([length] * length)
        prepared = Prepared(ids, "text <think>" if length % 2 else "text", "messages", (), b"p")
        try:
            told = chat(sampling, prepared, anew, stream=stream)
        except SmgError as error:
            with pytest.raises(SmgError, match=re.escape(error.message)):
                chat(sampling, prepared, again, alike=True, stream=stream)
            continue
        known = chat(sampling, prepared, again, alike=True, stream=stream)
        assert (known.ignored, list(known.legs)) == (told.ignored, list(told.legs))
        assert events_of(known) == events_of(told)


def test_only_what_was_granted_in_full_is_kept() -> None:
    model, sampling = served(), Sampling(max_tokens=90)
    (short,) = chat(sampling, Prepared(token_ids([1] * 5), "t", "messages"), model, alike=True).legs
    (long,) = chat(sampling, Prepared(token_ids([1] * 50), "t", "messages"), model, alike=True).legs
    assert (short.sampling.max_tokens, long.sampling.max_tokens) == (90, 50)
    assert short.sampling is sampling
    terms = request_bounds(model, CARD)
    assert sampling_bounds(model, CARD, sampling, ABILITIES) is not None
    for tokens in range(1, 2 * DRAWN_MAX):
        drawn = Sampling(max_tokens=tokens % 50 + 1)
        chat(drawn, Prepared(token_ids([1]), "t", "messages"), model, alike=True)
    assert len(terms.kept) <= DRAWN_MAX
