"""Request checks: how a servicer treats a request that no engine should have been sent."""

from collections.abc import Iterator
from dataclasses import dataclass

from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.prompt_ids import Greatest
from smg_chaos.engine.protocol.servicer_behaviours import Bad, Manners


@dataclass(frozen=True, slots=True)
class Verdict:
    """The worst that applies; `message` says what was wrong."""

    bad: Bad
    message: str = ""


FINE = Verdict(Bad.ACCEPTED)
# A request that is wrong in several ways meets the first of these.
_ORDER = (Bad.REFUSED, Bad.EXITS, Bad.KILLS, Bad.WEDGES, Bad.GARBAGE)


def judge(
    asked: Asked, manners: Manners, *, vocabulary: int, context: int, greatest: Greatest
) -> Verdict:
    """Return how this servicer treats the request; `greatest` caches the greatest ids of
    prompts.
    """
    known = greatest.all_below(asked.ids, vocabulary)
    found = list(_complaints(asked, manners, known, context))
    for bad in _ORDER:
        for verdict in found:
            if verdict.bad is bad:
                return verdict
    return FINE


def _complaints(asked: Asked, manners: Manners, known: bool, context: int) -> Iterator[Verdict]:
    ids = asked.ids
    if asked.text is not None:
        yield Verdict(manners.text_prompt, "this servicer requires tokenized input")
    elif not ids:
        yield Verdict(manners.no_ids, "the prompt cannot be empty")
    elif not known:
        yield Verdict(manners.unknown_id, f"token id {max(ids)} is out of vocabulary")
    longest = context - manners.prompt_reserve
    if len(ids) >= longest + (1 if manners.prompt_reserve else 0) and len(ids) > 0:
        yield Verdict(
            manners.long_prompt,
            f"input length ({len(ids)} tokens) exceeds the maximum allowed length ({longest} tokens)",
        )
    yield from _sampling(asked, manners)


def _sampling(asked: Asked, manners: Manners) -> Iterator[Verdict]:
    if asked.max_tokens == 0:
        yield Verdict(manners.no_tokens, "max_tokens must be at least 1, got 0")
    if asked.temperature is not None and asked.temperature < 0:
        yield Verdict(
            manners.cold_temperature, f"temperature must be non-negative, got {asked.temperature}"
        )
    if asked.top_p is not None and asked.top_p > 1:
        yield Verdict(manners.wide_top_p, f"top_p must be in (0, 1], got {asked.top_p}")
    if asked.n > 1 and asked.temperature == 0:
        yield Verdict(manners.greedy_choices, f"n must be 1 when sampling greedily, got {asked.n}")
    if manners.logprobs_max is not None and (asked.logprobs or 0) > manners.logprobs_max:
        yield Verdict(
            Bad.REFUSED,
            f"requested {asked.logprobs} logprobs, more than the {manners.logprobs_max} allowed",
        )
    if manners.zeros_are_literal and not asked.repetition_penalty:
        yield Verdict(Bad.GARBAGE, "a repetition penalty of zero divides by zero")
