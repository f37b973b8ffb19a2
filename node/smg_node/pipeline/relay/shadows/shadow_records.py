"""Shadow records: how an answer and that of its copy compare, kept for each route, in bounded memory. Pure."""

import json
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_node.core.generation.answer import Answer

RECORDS_MAX: Final = 100
"""Of each route; older ones only count."""
ROUTES_MAX: Final = 256
TEXT_MAX_CHARACTERS: Final = 8_192


class AnswerFigures(msgspec.Struct, frozen=True):
    """One answer in numbers; its text only where that is to be kept. `cost_pico`: None where nobody knows."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    took_ms: int
    first_ms: int | None
    cost_pico: int | None
    finish: str = ""
    calls: int = 0
    characters: int = 0
    text: str = ""


class ShadowRecord(msgspec.Struct, frozen=True):
    """One comparison. `copy` is None and `error` says why where the copy got no answer.

    `calls_equal`: the same calls in the same order, by name and arguments; None where neither has any.
    `length_ratio`: characters of the copy's text by those of the answer's; None where that has none.
    """

    at_ms: int
    request_id: str
    worker: str
    target: str
    answer: AnswerFigures
    copy: AnswerFigures | None
    error: str = ""
    calls_equal: bool | None = None
    length_ratio: float | None = None


class ShadowTotals(msgspec.Struct):
    """Counts of one route since the process began. `outcomes`: answered, failed, over_budget, dropped, cut."""

    outcomes: dict[str, int] = msgspec.field(default_factory=dict)
    calls_equal: int = 0
    calls_different: int = 0
    records: list[ShadowRecord] = msgspec.field(default_factory=list)


class ShadowBook:
    """Records of one process."""

    def __init__(self) -> None:
        self.outcomes: Counter[tuple[str, ...]] = Counter()
        """Copies by route and outcome."""
        self.calls: Counter[tuple[str, ...]] = Counter()
        """Copies with calls by route, and whether these are `equal` or `different`."""
        self._records: dict[str, deque[ShadowRecord]] = {}

    def count(self, route: str, outcome: str) -> None:
        """Count one copy."""
        self.outcomes[route, outcome] += 1

    def keep(self, route: str, record: ShadowRecord) -> None:
        """Keep a comparison; the oldest of the route goes, and the oldest route."""
        if record.calls_equal is not None:
            self.calls[route, "equal" if record.calls_equal else "different"] += 1
        kept = self._records.get(route)
        if kept is None:
            if len(self._records) >= ROUTES_MAX:
                del self._records[next(iter(self._records))]
            kept = self._records[route] = deque(maxlen=RECORDS_MAX)
        kept.append(record)

    def of(self, route: str) -> ShadowTotals:
        """Return what is known of a route, the newest record first."""
        outcomes = {what: n for (name, what), n in sorted(self.outcomes.items()) if name == route}
        return ShadowTotals(
            outcomes,
            self.calls[route, "equal"],
            self.calls[route, "different"],
            list(reversed(self._records.get(route, ()))),
        )


def figures_of(
    answer: Answer,
    *,
    used: tuple[int, int, int],
    took_s: float,
    first_s: float | None,
    cost_pico: int | None,
    keep_text: bool,
) -> AnswerFigures:
    """Return an answer in numbers."""
    choice = answer.choices[0]
    text = choice.text()
    return AnswerFigures(
        *used,
        took_ms=round(took_s * 1000),
        first_ms=None if first_s is None else round(first_s * 1000),
        cost_pico=cost_pico,
        finish="" if choice.finish is None else choice.finish.reason,
        calls=len(calls_of(answer)),
        characters=len(text),
        text=text[:TEXT_MAX_CHARACTERS] if keep_text else "",
    )


def calls_equal(one: Answer, other: Answer) -> bool | None:
    """Return whether both have the same calls; None where neither has any."""
    ours, theirs = calls_of(one), calls_of(other)
    return None if not ours and not theirs else ours == theirs


def calls_of(answer: Answer) -> Sequence[tuple[str, Any]]:
    """Return names and arguments of the calls in the first choice, in order."""
    blocks = answer.choices[0].blocks
    return [(block.name, _arguments(block.text)) for block in blocks if block.kind == "call"]


def _arguments(text: str) -> Any:
    """Return arguments so that white space, and the order of names, count for nothing."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, Mapping) else text
