"""Journey of one request through the cluster: chosen workers and why, failures, continuations.

These are msgspec structs: one takes 0.05 µs where a frozen dataclass takes 0.5. They travel and rest as arrays, so
that a field may only be added at the end, with a default.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import Any, Final, Literal, TypeAlias, overload

import msgspec

from smg_node.core.generation.outcome import Bill

Why: TypeAlias = Literal["first", "another", "retry", "continue", "target"]
"""The first call of a leg, a further leg of one request, again before a word was said, on from what was said,
or where the client wanted it."""
RATED_MAX: Final = 16
LEFT_MAX: Final = 64
"""Candidates that may be left to be rated later: the journey of an open request keeps 72 bytes of each."""
DROPPED_MAX: Final = 16
STEPS_MAX: Final = 256
"""A request may have 128 answers, each tried three times; what comes after that is only counted."""


class Rated(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One candidate: what it was expected to cost, in seconds, and what it need not compute, in tokens.

    `dollars` is what its answer was expected to cost in money; None where that is not known or was not asked.
    """

    worker: str
    cost_s: float
    wait_s: float
    overlap: float
    dollars: float | None = None


VIEWED_MAX: Final = 16
"""Pictures of a prompt that are told of: they are much alike, and each takes 130 bytes."""


class Ratings(Sequence[Rated]):
    """Costs of the candidates of one decision, the best first: at most 16, and the chosen one among
    them.

    A decision has no time to sort them: `leave` takes the lists that were there anyway, and the
    first reader (the packing of a journey that is over, an operator) has the best ones picked. A
    policy that knows its best ones appends them.
    """

    __slots__ = ("_left", "_told", "note")

    def __init__(self) -> None:
        self.note = ""
        """What the policy says of its choice, in words; "" where the costs say all."""
        self._told: list[Rated] = []
        self._left: _Left | None = None

    def append(self, one: Rated) -> None:
        """Add one more candidate, which costs no less than those before it; beyond the limit it is
        left out.
        """
        told = self.told()
        if len(told) < RATED_MAX:
            told.append(one)

    def extend(self, several: Iterable[Rated]) -> None:
        """Add several more, as `append` does."""
        for one in several:
            self.append(one)

    def leave(
        self,
        workers: Sequence[str],
        costs_s: Sequence[float],
        waits_s: Sequence[float],
        overlaps: Sequence[float],
        chosen: int,
        dollars: Sequence[float | None] | None = None,
    ) -> None:
        """Take all candidates instead of those before; the lists, one entry each, must not be
        changed any more.
        """
        if len(workers) == 1:
            # There is nothing to pick.
            money = None if dollars is None else dollars[0]
            self._told = [Rated(workers[0], costs_s[0], waits_s[0], overlaps[0], money)]
            self._left = None
            return
        self._left = workers, costs_s, waits_s, overlaps, chosen, dollars
        if len(workers) > LEFT_MAX:
            self.told()

    def __len__(self) -> int:
        return len(self.told())

    @overload
    def __getitem__(self, at: int) -> Rated: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Rated]: ...

    def __getitem__(self, at: int | slice) -> Rated | Sequence[Rated]:
        return self.told()[at]

    def __iter__(self) -> Iterator[Rated]:
        return iter(self.told())

    def told(self) -> list[Rated]:
        """Return them, worked out by now; not to be changed."""
        if self._left is not None:
            self._told, self._left = _best(*self._left), None
        return self._told


_Left: TypeAlias = tuple[
    Sequence[str],
    Sequence[float],
    Sequence[float],
    Sequence[float],
    int,
    Sequence[float | None] | None,
]


def _best(
    workers: Sequence[str],
    costs_s: Sequence[float],
    waits_s: Sequence[float],
    overlaps: Sequence[float],
    chosen: int,
    dollars: Sequence[float | None] | None,
) -> list[Rated]:
    """Return the best candidates; the last of them is the chosen one if that is not among them."""
    places = range(len(workers))
    # Of a few, to sort them all is quicker.
    if len(places) <= LEFT_MAX:
        best = sorted(places, key=costs_s.__getitem__)[:RATED_MAX]
    else:
        best = nsmallest(RATED_MAX, places, key=costs_s.__getitem__)
    if chosen not in best:
        best[-1] = chosen
    return [
        Rated(
            workers[at],
            costs_s[at],
            waits_s[at],
            overlaps[at],
            None if dollars is None else dollars[at],
        )
        for at in best
    ]


class Chosen(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """A worker was chosen. The best candidates come first; `of` is how many there were.

    `dropped` are workers of the model that were none, each with the reason.
    """

    at_ms: int
    choice: int
    """The first answer of the engine call."""
    why: Why
    worker: str
    policy: str
    of: int
    rated: Sequence[Rated] = msgspec.field(default_factory=list)
    dropped: tuple[tuple[str, str], ...] = ()
    waited_ms: int = 0
    key: bool = False
    """Whether a routing key decided."""
    prompt_tokens: int = 0
    role: str = ""
    """Which half of a pair it is, prefill or decode, or that it encodes a picture; "" for a worker that answers alone."""
    rank: int | None = None
    """The data-parallel rank that was chosen with it; None where it has one."""
    note: str = ""
    """What else decided, in words: a split, or why a key is not where it usually is."""


class Broke(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """An engine call ended before its answers were complete. `emitted`: tokens its answers had by then."""

    at_ms: int
    choice: int
    worker: str
    code: str
    message: str
    emitted: int = 0
    then: str = ""
    """What was done about it, in words."""


class Ran(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What became of a call of a tool on this side.

    `verdict` is allow, ask or deny, and `rule` what decided. `outcome` is a word of the metrics of calls, "refused" for
    one that was not sent, "asked" for one that waits for a person, "cut" for one that its answer did not outlast.
    """

    at_ms: int
    server: str
    tool: str
    verdict: str
    rule: str
    outcome: str
    ms: int = 0


class Viewed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A picture, video or sound of the prompt: its size in pixels, tokens, digest, and how its first worker got it.

    `family` is whose rules made it, "" where only the engine knows them; then sizes, tokens and digest are not known.
    `maker` is who made its patches: "node" for this request, "kept" or "shared" for another one, earlier or at the same
    time, or "engine". `transport` is how tensors went to its worker, "message" or "shared memory", "" before they have.
    """

    family: str
    width: int
    height: int
    tokens: int
    digest: str
    way: str
    worker: str
    maker: str = ""
    transport: str = ""
    """How tensors went to it: in the message, or in shared memory; "" of what is no tensor."""
    modality: str = "image"


class Journey(msgspec.Struct, array_like=True):
    """Record of one request. Times are wall-clock milliseconds."""

    request_id: str
    node: str
    dialect: str
    model: str
    began_ms: int
    steps: list[Chosen | Broke] = msgspec.field(default_factory=list)
    more: int = 0
    """Steps that were not kept."""
    ended_ms: int | None = None
    kind: str = ""
    """How it ended, as in `Outcome.kind`; "" while it goes on."""
    code: str = ""
    status: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    ttft_ms: int | None = None
    answer: str = ""
    """The id of the answer itself, without the prefix that its dialect gives it; "" while there is none."""
    unplaced: tuple[tuple[str, str], ...] = ()
    """If no worker could be had in the end: those of the model, each with the reason, at most 16."""
    message: str = ""
    """Why it was refused before a generation began, in the words of its answer; "" otherwise."""
    bills: tuple[Bill, ...] = ()
    """What vendors take for it, call by call."""
    runs: tuple[Ran, ...] = ()
    """What became of calls of tools on this side; told with the first journey of a request."""
    pictures: tuple[Viewed, ...] = ()
    """The first pictures of its prompt."""
    processor: tuple[tuple[str, Any, str], ...] = ()
    """The numbers that its pictures were made by: name, value, and where it was found."""

    def add(self, step: Chosen | Broke) -> None:
        """Note what happened next."""
        if len(self.steps) < STEPS_MAX:
            self.steps.append(step)
        else:
            self.more += 1
