"""Answer end: the position and the finish reason, computed once, when the answer begins."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from smg_chaos.engine.protocol.answers import Answer
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.response_writer import Ending
from smg_chaos.engine.protocol.servicer_behaviours import Bad, Manners
from smg_chaos.engine.scripts.bundle import Bundle

# A stop string cannot reach further back than this many tokens: a character a token at worst.
_STOP_REACH_TOKENS: Final = 64
_LENGTH: Final = Ending("length")


@dataclass(frozen=True, slots=True)
class Plan:
    """`end_at` tokens are made; the last `trimmed` of them are not shown."""

    end_at: int
    ending: Ending
    trimmed: int = 0
    hold_to: Sequence[int] | None = None


def plan(asked: Asked, answer: Answer, manners: Manners, bundle: Bundle, context: int) -> Plan:
    """Return where `answer` ends under the request's parameters."""
    limit = _limit(asked, manners, context)
    if limit == 0:
        return Plan(0, _LENGTH)
    first = _by_id(asked, answer, manners, bundle, limit)
    if manners.stop_strings and asked.stop:
        by_text = _by_text(asked, answer, manners, bundle, first.end_at)
        first = by_text or first
        if manners.holds_back:
            first = Plan(
                first.end_at,
                first.ending,
                first.trimmed,
                _holds(asked.stop, answer, bundle, first.end_at),
            )
    return first


def _limit(asked: Asked, manners: Manners, context: int) -> int:
    rest = max(1, context - len(asked.ids))
    if asked.max_tokens is None:
        return rest
    if asked.max_tokens == 0:
        return 0 if manners.no_tokens is Bad.EMPTY else 1
    return min(asked.max_tokens, rest) if manners.clamps else asked.max_tokens


def allowed(asked: Asked, answer: Answer, bundle: Bundle) -> Answer:
    """Return the answer under a minimum length: ids that would end it are not printed."""
    if not asked.min_tokens:
        return answer
    ends = _end_ids(asked, bundle)
    at = answer.first_of(ends)
    return answer if at is None or at + 1 >= asked.min_tokens else answer.never(ends)


def _end_ids(asked: Asked, bundle: Bundle) -> frozenset[int]:
    if not asked.stop_ids:
        return frozenset() if asked.ignore_eos else bundle.all_eos_ids
    return frozenset(asked.stop_ids).union(() if asked.ignore_eos else bundle.all_eos_ids)


def _by_id(asked: Asked, answer: Answer, manners: Manners, bundle: Bundle, limit: int) -> Plan:
    at = answer.first_of(_end_ids(asked, bundle))
    if at is None or at >= limit:
        return Plan(limit, _LENGTH)
    token = answer.token(at)
    trimmed = 0 if manners.end_ids_in_output or asked.keep_stop else 1
    told = token in asked.stop_ids or manners.matched_at_end or token not in bundle.eos_ids
    reason = manners.tool_reason if answer.tool else "stop"
    return Plan(at + 1, Ending(reason, token if told else None), trimmed)


def _by_text(
    asked: Asked, answer: Answer, manners: Manners, bundle: Bundle, limit: int
) -> Plan | None:
    """Return where the first stop string is complete, if that is before `limit`."""
    whole = bundle.decode(answer.slice(0, limit))
    found = [(whole.index(stop), stop) for stop in asked.stop if stop and stop in whole]
    if not found:
        return None

    def complete_at(stop: str) -> int:
        return bisect_left(
            range(limit + 1), x=True, key=lambda n: stop in bundle.decode(answer.slice(0, n))
        )

    end_at, stop = min((complete_at(stop), stop) for _, stop in found)
    end_at = min(max(end_at, asked.min_tokens), limit)
    trimmed = 0
    if not (manners.end_ids_in_output or asked.keep_stop) and manners.stop_string_reason != "stop":
        before = whole[: whole.index(stop)]
        trimmed = end_at - _tokens_of(before, answer, bundle, end_at)
    return Plan(end_at, Ending(manners.stop_string_reason, stop), trimmed)


def _tokens_of(text: str, answer: Answer, bundle: Bundle, limit: int) -> int:
    """Return how many whole tokens fit into `text`."""
    count = 0
    while count < limit and len(bundle.decode(answer.slice(0, count + 1))) <= len(text):
        count += 1
    return count


def _holds(stops: Sequence[str], answer: Answer, bundle: Bundle, end_at: int) -> list[int]:
    """Return for every number of tokens how many may be shown: those that can be the start of no
    stop string.
    """
    shown = [0]
    for made in range(1, end_at + 1):
        tail = bundle.decode(answer.slice(max(0, made - _STOP_REACH_TOKENS), made))
        begins = any(
            tail.endswith(stop[:length]) for stop in stops for length in range(1, len(stop))
        )
        shown.append(shown[-1] if begins else made)
    return shown
