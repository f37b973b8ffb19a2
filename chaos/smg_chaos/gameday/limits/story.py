"""Story of a trial: its chapters with their times, and the spans that were charged in them.
Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from smg_chaos.gameday.limits.clients.trial_records import Answer, Arrival
from smg_chaos.gameday.limits.judge import Allowance, Span

ADMITTED = 200
REFUSED = 429


@dataclass(frozen=True, slots=True)
class Chapter:
    """A stretch of time with one kind of load, in which one thing was done to the nodes."""

    name: str
    began_us: int
    ended_us: int

    def windows(self, window_us: int, *, after_us: int = 0) -> tuple[int, int]:
        """Return the first and the last window that lie wholly inside, `after_us` and more after its beginning."""
        first = -(-(self.began_us + after_us) // window_us)
        return first, self.ended_us // window_us - 1


@dataclass(frozen=True, slots=True)
class Record:
    """Requests sent from one moment on, and their arrivals at the engines, by serial number."""

    answers: Sequence[Answer]
    arrivals: Mapping[int, Arrival]

    def of(self, chapter: Chapter) -> "Record":
        """Return the requests sent in a chapter."""
        inside = [one for one in self.answers if chapter.began_us <= one.sent_us < chapter.ended_us]
        return Record(inside, self.arrivals)

    def spans(self, allowance: Allowance, smear_us: int) -> list[Span]:
        """Return the spans of the arrivals, each once however many calls it took, as it may have
        been charged.
        """
        return [
            allowance.span(answer.sent_us, self.arrivals[answer.serial].came_us, smear_us=smear_us)
            for answer in self.answers
            if answer.serial in self.arrivals
        ]

    def counts(self) -> dict[str, int]:
        """Return how many answers there are of each kind: by status, or by the failure."""
        found: dict[str, int] = {}
        for answer in self.answers:
            kind = str(answer.status) if answer.status else answer.why
            found[kind] = found.get(kind, 0) + 1
        return dict(sorted(found.items()))

    def refused(self) -> int:
        """Return how many were refused."""
        return sum(answer.status == REFUSED for answer in self.answers)

    def failed(self, hurt: "Hurt") -> list[Answer]:
        """Return the requests that were neither admitted nor refused, though their node was not
        hurt.
        """
        return [
            answer
            for answer in self.answers
            if answer.status not in (ADMITTED, REFUSED) and not hurt.excuses(answer)
        ]


@dataclass
class Hurt:
    """Nodes that could not answer, and when: by node, spans of time in microseconds."""

    times: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def add(self, node: int, from_us: int, until_us: int) -> None:
        """Note that a node was hurt from one moment until another."""
        self.times.setdefault(node, []).append((from_us, until_us))

    def excuses(self, answer: Answer) -> bool:
        """Return whether the node was hurt at some moment between the sending and the end."""
        return any(
            from_us <= answer.got_us and answer.sent_us <= until_us
            for from_us, until_us in self.times.get(answer.node, ())
        )
