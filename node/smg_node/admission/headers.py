"""Headers of limits, cached per set of limits: only changing numbers are formatted anew. Pure.

Every reply to a limited client has them, and from one to the next there is less left of each limit
and nothing else is new. So they are put together as `header_values.limit_headers` does it, and kept
beside *rows*: the conditions under which only the numbers of what remains are formatted anew. A row
goes by

    facts      what its share was in: the same window, amount, state and debt
    low, high  while so much remains, the same limit in windows is the tightest of its kind, and of all

A share that is not like its row, or a limit whose owner has reported nothing: then all is put
together again. What is open at a time goes up and down, so whether it is the tightest is computed
each time. A property test holds both equal.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from smg_node.admission.header_values import GROUPS, Family, duration, group_names, moment
from smg_node.admission.ports import Share, State, Unit

HEARD: Final[tuple[State, ...]] = ("exact", "alone")
"""States in which what an owner said it has left is there for everybody."""
UNKNOWN: Final = -1
_NEVER_MS: Final = 1 << 62
_Facts: TypeAlias = tuple[Any, ...]
_Named: TypeAlias = tuple[str, str]
"""The name of a limit, and the state of its share."""

# One call and one comparison for what nearly never changes.
_facts_of: Final = attrgetter("window", "amount", "state", "debt", "ends_ms")


class Least:
    """The least that clients were told to remain of a window: UNKNOWN if none was, or if it was
    another window.
    """

    __slots__ = ("units",)

    def __init__(self) -> None:
        self.units = UNKNOWN


class Shown(Protocol):
    """Interface of a limit, as far as its headers need it; see `limit_matching.MatchedLimit`."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def unit(self) -> Unit:
        """What it counts."""
        ...

    @property
    def window_ms(self) -> int:
        """How long a window is, 0 for what is open at a time."""
        ...

    @property
    def share(self) -> Share:
        """What this node may spend of it."""
        ...

    @property
    def least(self) -> Least:
        """The least reported of its window: what remains does not rise."""
        ...

    def remains(self) -> int:
        """Return what is reported to a client as remaining now."""
        ...


class _Row(NamedTuple):
    """A limit in windows in its plain state; `name` is the header of what remains, "" for none."""

    share: Share
    facts: _Facts
    low: int
    high: int
    least: Least
    name: str


class _Place(NamedTuple):
    """A limit on what is open at a time: it has no header of what remains, it may only be the one
    named.
    """

    share: Share
    facts: _Facts
    amount: int
    named: _Named


class LimitHeaders:
    """Headers of one family, for the limits that requests of one kind meet."""

    __slots__ = (
        "_amount",
        "_from_ms",
        "_groups",
        "_headers",
        "_is_openai",
        "_measures",
        "_named",
        "_places",
        "_resets",
        "_rows",
        "_tightest",
        "_to_ms",
    )

    def __init__(self, measures: Sequence[Shown], family: Family) -> None:
        self._measures = measures
        self._is_openai = family == "openai"
        # The three names of each group, and the places of its limits.
        self._groups = [
            (*group_names(group, family), places)
            for group, units in GROUPS[family].items()
            if (places := tuple(at for at, one in enumerate(measures) if one.unit in units))
        ]
        self._headers: dict[str, str] = {}
        # What is kept is good from then to then, by the wall clock.
        self._from_ms, self._to_ms = _NEVER_MS, -1
        # One at least; the last is that of the limit in windows that has least of its amount.
        self._rows: Sequence[_Row] = ()
        self._amount = 0
        self._tightest = self._named = ("", "")
        self._places: Sequence[_Place] = ()
        # The headers that say how long windows go on, and whose.
        self._resets: Sequence[tuple[str, Share]] = ()

    def as_of(self, now_ms: int) -> Mapping[str, str] | None:
        """Return them as of now, until the next call; None where a share sleeps, so that its amount
        is unknown.
        """
        if not self._from_ms <= now_ms <= self._to_ms:
            if not self._rows:
                return self._made_anew(now_ms)
            self._spell_resets(now_ms)
        headers, remaining = self._headers, 0
        for share, facts, low, high, least, name in self._rows:
            # `MatchedLimit.remains` where all is well.
            pool = share.pool
            remaining = share.left + pool
            if remaining > least.units:
                remaining = least.units
            if pool < 0 or not low <= remaining <= high or _facts_of(share) != facts:
                return self._made_anew(now_ms)
            least.units = remaining
            if name:
                headers[name] = str(remaining)
        named, fraction = self._tightest, remaining / self._amount
        for share, facts, amount, place in self._places:
            pool = share.pool
            free = share.left + pool
            if pool < 0 or free < 0 or _facts_of(share) != facts:
                return self._made_anew(now_ms)
            if free / amount <= fraction:
                if free / amount == fraction:
                    # The first of them is named.
                    return self._made_anew(now_ms)
                named, fraction = place, free / amount
        if named is not self._named:
            self._named = named
            headers["x-smg-limit"], headers["x-smg-limit-state"] = named
        return headers

    def _made_anew(self, now_ms: int) -> Mapping[str, str] | None:
        """Return them, put together from everything, and keep what stays valid for longer."""
        self._from_ms, self._to_ms = _NEVER_MS, -1
        self._rows = ()
        measures = self._measures
        if any(measure.share.window < 0 for measure in measures):
            return None
        remaining = [measure.remains() for measure in measures]
        fractions = [
            remains / measure.share.amount if measure.share.amount else 0.0
            for measure, remains in zip(measures, remaining, strict=True)
        ]
        self._headers = headers = dict[str, str]()
        tightest = [_first_least(fractions, places) for *_, places in self._groups]
        self._resets = [
            (group[2], measures[at].share) for at, group in zip(tightest, self._groups, strict=True)
        ]
        for at, (limit, remains, *_) in zip(tightest, self._groups, strict=True):
            headers[limit] = str(measures[at].share.amount)
            headers[remains] = str(remaining[at])
        if measures:
            named = _first_least(fractions, range(len(measures)))
            headers["x-smg-limit"] = measures[named].name
            headers["x-smg-limit-state"] = measures[named].share.state
            self._keep(fractions, tightest)
        self._spell_resets(now_ms)
        if not self._rows:
            self._from_ms = _NEVER_MS
        return headers

    # ── What is kept ─────────────────────────────────────────────────────────

    def _keep(self, fractions: Sequence[float], tightest: Sequence[int]) -> None:
        measures = self._measures
        windowed = [at for at, measure in enumerate(measures) if measure.window_ms]
        if not windowed or not all(map(_is_well, measures)):
            return
        first = _first_least(fractions, windowed)
        bounds = [(0, measure.share.amount) for measure in measures]
        for best, places in [
            (first, windowed),
            *((at, places) for at, (*_, places) in zip(tightest, self._groups, strict=True)),
        ]:
            others = [fractions[at] for at in places if at != best]
            if not others:
                continue
            border = (fractions[best] + min(others)) / 2
            if not fractions[best] < border < min(others):
                # They are as tight as each other, and the next request may decide: there is nothing to go by.
                return
            for at in places:
                bounds[at] = _bounded(bounds[at], border, measures[at].share.amount, at == best)
        names = [(at, group[1]) for at, group in zip(tightest, self._groups, strict=True)]
        names += [(at, "") for at in windowed if at not in tightest]
        self._rows = [
            _Row(
                measures[at].share,
                _facts_of(measures[at].share),
                *bounds[at],
                measures[at].least,
                name,
            )
            for at, name in sorted(names, key=lambda one: one[0] == first)
        ]
        self._tightest = _named(measures[first])
        self._amount = measures[first].share.amount
        self._places = [
            _Place(measure.share, _facts_of(measure.share), measure.share.amount, _named(measure))
            for measure in measures
            if not measure.window_ms
        ]
        self._named = ("", "")

    def _spell_resets(self, now_ms: int) -> None:
        """Format how long windows go on, and the interval in which that text stays the same."""
        from_ms, to_ms = 0, _NEVER_MS
        for reset, share in self._resets:
            ends_ms = share.ends_ms
            if ends_ms < now_ms or not share.window_ms:
                ends_ms = from_ms = to_ms = now_ms
            left_ms = ends_ms - now_ms
            if not self._is_openai:
                self._headers[reset] = moment(ends_ms)
                to_ms = min(to_ms, ends_ms)
                continue
            self._headers[reset] = duration(left_ms)
            # Whole seconds, rounded up, and less than one in milliseconds.
            seconds_ms = -(-left_ms // 1_000) * 1_000 if left_ms >= 1_000 else left_ms
            from_ms = max(from_ms, ends_ms - seconds_ms)
            to_ms = min(
                to_ms, ends_ms - max(1_000, seconds_ms - 999) if left_ms >= 1_000 else now_ms
            )
        self._from_ms, self._to_ms = from_ms, to_ms


class HeadersByFamily(dict[Family, LimitHeaders]):
    """Headers of each family, for the same limits; made when they are first asked for."""

    def __init__(self, measures: Sequence[Shown]) -> None:
        self._measures = measures

    def __missing__(self, family: Family) -> LimitHeaders:
        made = self[family] = LimitHeaders(self._measures, family)
        return made


def _named(measure: Shown) -> _Named:
    return measure.name, measure.share.state


def _is_well(measure: Shown) -> bool:
    """Whether what remains of it is the sum of what is left here and at its owner."""
    share = measure.share
    if share.pool < 0 or share.state not in HEARD or share.debt > 0 or share.amount <= 0:
        return False
    return not measure.window_ms or measure.least.units >= 0


def _bounded(bounds: tuple[int, int], border: float, amount: int, below: bool) -> tuple[int, int]:
    """Return the least and the most that may remain of an amount for it to be surely below or above
    a border.
    """
    low, high = bounds
    # A product may be rounded, and to be below or above is what the quotient says.
    limit = int(border * amount)
    if below:
        while limit / amount >= border:
            limit -= 1
        return low, min(high, limit)
    while limit / amount <= border:
        limit += 1
    return max(low, limit), high


def _first_least(fractions: Sequence[float], places: Sequence[int]) -> int:
    """Return the place that has least of what it allows; of equals the first."""
    return min(places, key=fractions.__getitem__)
