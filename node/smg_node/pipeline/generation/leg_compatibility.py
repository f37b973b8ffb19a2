"""Leg compatibility: whether another worker can take a call checked for the first one. Pure.

A call was checked for ids inside the vocabulary, a prompt that fits, an answer that has room, and
parameters that the engine supports. So it may go to any worker of the model that can do at least
that, also one with another engine. Defaults that the first engine would have filled in by itself
have been written into the call (`call_plan`).
"""

from smg_node.engines.contracts.grammar_mapping import grammars_of
from smg_node.engines.contracts.sampling_rules import refusals
from smg_node.engines.engine import Abilities, ModelCard
from smg_node.fleet.models.served_model import ServedModel
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.generation.call_plan import Leg
from smg_node.pipeline.reservation import Reservation


def can_take(worker: Worker, leg: Leg, model: ServedModel, checked: Reservation) -> bool:
    """Whether `worker`, of `model`, can be given a leg that was checked for the worker of `checked`."""
    card, engine = worker.card, worker.engine
    if card is None or engine is None or worker.model is not model:
        return False
    if leg.count > 1 and worker.role != "regular":
        # What one of a pair hands over is taken once.
        return False
    if leg.media is not None and not leg.media.fits(card):
        return False
    known = checked.abilities
    same = engine.abilities is known or _is_able(engine.abilities, known, leg)
    if leg.sampling.constraint is not None and card is not checked.card:
        # What it is told is written for what the checked one's grammars can do.
        same = same and grammars_of(card, engine.abilities) == grammars_of(checked.card, known)
    return same and (card is checked.card or _has_room(card, checked.card, leg, model))


def _is_able(abilities: Abilities, checked: Abilities, leg: Leg) -> bool:
    if leg.count > 1 and not abilities.native_n:
        return False
    known = refusals(leg.sampling, checked)
    return all(refusal in known for refusal in refusals(leg.sampling, abilities))


def _has_room(card: ModelCard, checked: ModelCard, leg: Leg, model: ServedModel) -> bool:
    most = leg.sampling.max_tokens
    assert most is not None
    prompt_max, context = model.prompt_max(card), model.context(card)
    return (
        model.vocabulary(card) >= model.vocabulary(checked)
        and (prompt_max is None or len(leg.ids) <= prompt_max)
        and (context is None or len(leg.ids) + most <= context)
    )
