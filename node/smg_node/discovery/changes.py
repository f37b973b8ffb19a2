"""Changes: what the writer of a source has to say to the registry, by what the source shows and what is known.

    seen, not known                        add, at once
    spec, instance or place differ         change, at once
    ready ↔ unready                        the first at once, then one each 5 s, the last one always
    leaving                                at once, and for good as long as it is the same instance
    removed by an operator                 nothing, while it is the same instance and nobody else lists it; remembered for
                                           the first source that shows it
    shown by another source as well        nothing, unless that one lets go of it or is in no settings
    gone, and another source waits         let go at once: the worker stays; drop five seconds later if nobody takes it
    gone, and leaving or not up            drop, at once
    gone otherwise                         drop half a second later, unless everything else has gone by then
    all gone, and one of them is up        held, asked again, then believed; so is what an operator removed
    view not whole, or old                 nothing

Gone is what the source said ends, or what is missing in a view that is known to be whole up to a moment later than the
entry. What another node has written since then is left as it is until a later view is there: so an old view neither
takes away what was found since, nor brings back what has gone. For that the source is asked again.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from smg_node.discovery.known import Dropped, Known
from smg_node.discovery.sighting import Endpoint, Sighting, SightingState, View

VIEW_AGE_MAX_MS: Final = 90_000
"""A view that is older says nothing: bookmarks of a watch come once a minute."""
FLIP_APART_MS: Final = 5_000
SETTLE_MS: Final = 500
"""A whole selection does not go in one moment: who relabels a hundred pods takes so long between the first and the last."""
WORKERS_MAX: Final = 16_384
RELEASED_MS: Final = 5_000
"""So long an endpoint that another source may want is there for it to take: it hears of it within a second, or a few where
a machine is crowded. What is really gone is called down by probers meanwhile."""
SLICE: Final = 250
"""So many endpoints are looked at in one step, about a millisecond."""

IsOrphan = Callable[[str], bool]
"""Whether the source of that name is in the settings of no node any more."""
CallsUp = Callable[[str], bool]
"""Whether some prober calls the worker of that id up, or none has judged it yet."""
Contested = Callable[[], bool]
"""Whether another source of the kind shows something that it may not have now."""
_NOBODY: Final = 2**62


class Reason(Enum):
    """Why something is written."""

    ADD = "add"
    CHANGE = "change"
    FLIP = "flip"
    RELEASE = "release"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Write:
    """One thing to say: what is seen there now, None for an endpoint that is gone, let go or to stay away; over what was
    known of it."""

    endpoint: Endpoint
    reason: Reason
    sighting: Sighting | None
    known: Known | None


@dataclass(frozen=True, slots=True)
class Memory:
    """What a writer remembers between two looks; a new writer begins without any.

    `empty_ms`: since when everything is gone; `missing`: since when one is; `flipped`: when its readiness was written;
    `waiting`: since when one is seen that there was no room for. All by the monotonic clock in ms.
    """

    empty_ms: int = 0
    missing: Mapping[Endpoint, int] = field(default_factory=dict)
    flipped: Mapping[Endpoint, int] = field(default_factory=dict)
    waiting: Mapping[Endpoint, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be written, additions first, and when to ask again; None: when something happens.

    `held` are endpoints that are gone and kept, until `held_until_ms` at least; `ask_again`: the source is to be asked
    anew, before that is believed or because the view is older than what others wrote. `refused` says by endpoint why it is seen and not registered.
    """

    writes: tuple[Write, ...]
    next_ms: int | None
    memory: Memory
    held: tuple[Endpoint, ...] = ()
    held_until_ms: int = 0
    ask_again: bool = False
    refused: Mapping[Endpoint, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """Conditions of a look: the source's name, how many more workers fit, what probers say, and times.

    `shown_ms`: when the view was shown; `since_ms`: nothing is concluded from views that are whole up to an earlier
    moment, because this node began to write then. `dropped`: what other nodes found gone a while ago. `keep`: workers
    stay when the source is in no settings any more.
    """

    name: str
    now_ms: int
    shown_ms: int
    since_ms: int = 0
    room: int = WORKERS_MAX
    empty_confirm_ms: int = 30_000
    calls_up: CallsUp = lambda worker_id: False
    is_orphan: IsOrphan = lambda owner: False
    contested: Contested = lambda: False
    dropped: Mapping[Endpoint, Dropped] = field(default_factory=dict)
    keep: bool = False


def changes(
    view: View, known: Mapping[Endpoint, Known], memory: Memory, looking: Looking
) -> Changes:
    """Return what the writer of a source has to say, and when to ask again; the same inputs, the same answer."""
    steps = changes_in_steps(view, known, memory, looking)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Changes = end.value
            return found


def changes_in_steps(
    view: View, known: Mapping[Endpoint, Known], memory: Memory, looking: Looking
) -> Generator[float, None, Changes]:
    """Yield 0.0 between steps that each take about a millisecond, and return the changes.

    What is known may change meanwhile: each endpoint is decided by what it is at its turn.
    """
    whole_ms = view.whole_ms
    if not whole_ms or looking.now_ms - whole_ms > VIEW_AGE_MAX_MS or whole_ms < looking.since_ms:
        return Changes((), None, memory)
    look = _Look(view, memory, looking)
    for at, endpoint in enumerate(list(view.sightings)):
        if at % SLICE == SLICE - 1:
            yield 0.0
        look.seen(view.sightings[endpoint], known.get(endpoint))
    for at, endpoint in enumerate(list(known)):
        if at % SLICE == SLICE - 1:
            yield 0.0
        entry = known.get(endpoint)
        if entry is not None and endpoint not in view.sightings and entry.owner == looking.name:
            look.unseen(endpoint, entry)
    return look.settled()


class _Look:
    """One look at everything."""

    def __init__(self, view: View, memory: Memory, looking: Looking) -> None:
        self._view = view
        self._before = memory
        self._looking = looking
        self._adds: list[Write] = []
        self._others: list[Write] = []
        self._gone: list[tuple[Endpoint, Known, bool]] = []
        self._flipped: dict[Endpoint, int] = {}
        self._refused: dict[Endpoint, str] = {}
        self._outdated = False
        """Whether something differs that another node has written since the view was whole."""
        self._next_ms = _NOBODY

    # ── What is seen ─────────────────────────────────────────────────────────

    def seen(self, sighting: Sighting, known: Known | None) -> None:
        """Decide about an endpoint that the source shows."""
        if known is None:
            self._unknown(sighting)
            return
        name = self._looking.name
        lost = known.released or self._looking.is_orphan(known.owner)
        if known.owner and known.owner < name and not lost:
            self._refused[sighting.endpoint] = f"the source {known.owner} shows it as well"
        elif known.withheld:
            self._withheld(sighting, known)
        else:
            self._compared(sighting, known)

    def _unknown(self, sighting: Sighting) -> None:
        dropped = self._looking.dropped.get(sighting.endpoint)
        if sighting.state is SightingState.LEAVING:
            return
        newer = dropped is not None and dropped.heard_ms > self._view.whole_ms
        if newer and dropped is not None and sighting.instance in ("", dropped.instance):
            self._outdated = True
            return
        self._adds.append(Write(sighting.endpoint, Reason.ADD, sighting, None))

    def _withheld(self, sighting: Sighting, known: Known) -> None:
        """An operator removed it: another engine there is another worker, and so is one that is added by hand."""
        if known.exists or sighting.instance != known.instance:
            if sighting.state is not SightingState.LEAVING:
                self._adds.append(Write(sighting.endpoint, Reason.ADD, sighting, known))
        else:
            why = "an operator removed it; `workers add` brings it back"
            self._refused[sighting.endpoint] = why
            if known.owner != self._looking.name:
                # That one goes, or comes later: what it forgets would come back here.
                self._others.append(Write(sighting.endpoint, Reason.CHANGE, None, known))

    def _compared(self, sighting: Sighting, known: Known) -> None:
        endpoint, state = sighting.endpoint, sighting.state
        same = bool(sighting.instance) and sighting.instance == known.instance
        if same and known.state is SightingState.LEAVING:
            state = known.state
        meant = sighting if state is sighting.state else replace(sighting, state=state)
        differs = known.url != sighting.url or known.instance != sighting.instance
        differs = differs or known.misplaced or known.owner != self._looking.name
        differs = differs or known.keep != self._looking.keep or known.released
        if known.released and known.owner != self._looking.name:
            # However old the view is: if the engine is gone by now, this source will tell.
            self._others.append(Write(endpoint, Reason.CHANGE, meant, known))
        elif (differs or state is not known.state) and self._is_newer(known):
            self._outdated = True
        elif differs:
            self._others.append(Write(endpoint, Reason.CHANGE, meant, known))
        elif state is not known.state:
            self._flip(meant, known)
        elif endpoint in self._before.flipped:
            self._remember_flip(endpoint, self._before.flipped[endpoint])

    def _is_newer(self, known: Known) -> bool:
        """Whether another node has written the entry since the view was whole."""
        return not known.own and known.heard_ms > self._view.whole_ms

    def _flip(self, sighting: Sighting, known: Known) -> None:
        """Write another state, unless another one was written a moment ago; that it ends is said at once."""
        endpoint, now_ms = sighting.endpoint, self._looking.now_ms
        last_ms = self._before.flipped.get(endpoint)
        due_ms = 0 if last_ms is None else last_ms + FLIP_APART_MS
        if sighting.state is SightingState.LEAVING or now_ms >= due_ms:
            self._flipped[endpoint] = now_ms
            self._others.append(Write(endpoint, Reason.FLIP, sighting, known))
        else:
            self._flipped[endpoint] = due_ms - FLIP_APART_MS
            self._next_ms = min(self._next_ms, due_ms)

    def _remember_flip(self, endpoint: Endpoint, last_ms: int) -> None:
        if self._looking.now_ms < last_ms + FLIP_APART_MS:
            self._flipped[endpoint] = last_ms

    # ── What is not ──────────────────────────────────────────────────────────

    def unseen(self, endpoint: Endpoint, known: Known) -> None:
        """Decide about an endpoint of this source that it does not show."""
        view, looking = self._view, self._looking
        said = endpoint in view.gone and known.heard_ms <= looking.shown_ms
        if known.heard_ms > view.whole_ms and not (said and known.own):
            # A later view will say; where the source told its end expressly, it is asked for one.
            self._outdated |= not known.own
            return
        doubted = (
            not known.withheld
            and known.state is not SightingState.LEAVING
            and looking.calls_up(known.worker_id)
        )
        self._gone.append((endpoint, known, doubted))

    # ── What follows ─────────────────────────────────────────────────────────

    def settled(self) -> Changes:
        """Return what follows from all of it."""
        looking = self._looking
        empty_ms = self._empty_ms()
        until_ms = empty_ms + looking.empty_confirm_ms
        believed = looking.now_ms >= until_ms and self._view.whole_ms >= until_ms
        is_held = bool(empty_ms) and not believed
        missing: dict[Endpoint, int] = {}
        held: list[Endpoint] = []
        drops: list[Write] = []
        wanted = bool(self._gone) and looking.contested()
        for endpoint, known, doubted in self._gone:
            since_ms = self._before.missing.get(endpoint, looking.now_ms)
            due_ms = since_ms + SETTLE_MS
            alive = not known.withheld and known.state is not SightingState.LEAVING
            if wanted and alive and not known.released:
                self._others.append(Write(endpoint, Reason.RELEASE, None, known))
            if is_held and alive:
                held.append(endpoint)
                missing[endpoint] = since_ms
            elif is_held and known.state is not SightingState.LEAVING:
                # Forgotten, it would come back when the source shows again what it did.
                missing[endpoint] = since_ms
            elif wanted and alive and looking.now_ms < since_ms + RELEASED_MS:
                missing[endpoint] = since_ms
                self._next_ms = min(self._next_ms, since_ms + RELEASED_MS)
            elif doubted and not empty_ms and looking.now_ms < due_ms:
                missing[endpoint] = since_ms
                self._next_ms = min(self._next_ms, due_ms)
            else:
                drops.append(Write(endpoint, Reason.DROP, None, known))
        if is_held:
            self._next_ms = min(self._next_ms, max(until_ms, looking.now_ms + 1_000))
        adds, waiting = self._fitting()
        return Changes(
            writes=(*adds, *self._others, *drops),
            next_ms=None if self._next_ms == _NOBODY else self._next_ms,
            memory=Memory(empty_ms, missing, self._flipped, waiting),
            held=tuple(held),
            held_until_ms=until_ms if is_held else 0,
            ask_again=self._outdated or (is_held and looking.now_ms >= until_ms),
            refused=self._refused,
        )

    def _empty_ms(self) -> int:
        """Return since when everything is gone although one of it is up; 0: it is not so."""
        if self._view.sightings or not self._gone:
            return 0
        # Once it is held, that probers call the last one down meanwhile ends it.
        if not any(doubted for _, _, doubted in self._gone):
            return 0
        return self._before.empty_ms or self._looking.now_ms

    def _fitting(self) -> tuple[list[Write], dict[Endpoint, int]]:
        """Return the additions there is room for, those first that wait for the longest time, and who waits."""
        now_ms, since = self._looking.now_ms, self._before.waiting
        room = max(0, self._looking.room)
        fresh = [one for one in self._adds if one.known is None or not one.known.exists]
        if len(fresh) <= room:
            return self._adds, {}
        ranked = sorted(fresh, key=lambda one: (since.get(one.endpoint, now_ms), one.endpoint))
        waiting = {one.endpoint: since.get(one.endpoint, now_ms) for one in ranked[room:]}
        for endpoint in waiting:
            self._refused[endpoint] = f"there are {WORKERS_MAX} workers already"
        return [one for one in self._adds if one.endpoint not in waiting], waiting
