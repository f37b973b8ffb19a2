"""Duty: which node writes what a source shows, and which one stands by with a warm view.

All nodes that are configured with a source are candidates, in an order that all of them know. The first that is fit
and has shown that it can writes, or else the first that is fit; one more watches: the first of the others that does not fail. So there are two watches in the cluster at most,
however many nodes there are. One that fails for 10 s is not fit, until it has been well for 30 s: its place is then
taken by the next one, unless nobody is fit. Who fails and is one of the first two goes on trying: that is no watch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

FAILING_MS: Final = 10_000
RECOVERED_MS: Final = 30_000

Standing: TypeAlias = Literal["waiting", "starting", "ok", "recovering", "failing"]
"""What a node says of itself: `waiting`: others watch; `recovering`: it answers again, not yet for long."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A living node that is configured with the source: how it stands, and for how long."""

    standing: Standing
    since_ms: int


@dataclass(frozen=True, slots=True)
class Duty:
    """Who does what. `writer` and `standby` are "" where there is nobody."""

    writer: str
    standby: str
    watchers: tuple[str, ...]
    """All that are to ask the source, those that only go on trying as well."""


def duty(ranked: Sequence[str], candidates: Mapping[str, Candidate]) -> Duty:
    """Return who does what; `ranked` are the candidates in the order that all nodes know."""
    present = [name for name in ranked if name in candidates]
    if not present:
        return Duty("", "", ())
    fit = [name for name in present if is_fit(candidates[name])]
    proven = [name for name in fit if candidates[name].standing not in ("waiting", "starting")]
    answering = [name for name in present if _answers(candidates[name])]
    writer = (*proven, *fit, *answering, *present)[0]
    others = [name for name in present if name != writer]
    standby = next((name for name in others if _answers(candidates[name])), "")
    trying = [name for name in present[:2] if not _answers(candidates[name])]
    watchers = {writer: None, standby: None, **dict.fromkeys(trying)}
    return Duty(writer, standby, tuple(sorted(name for name in watchers if name)))


def is_fit(one: Candidate) -> bool:
    """Whether this node may write: it does not fail, or not for long, and has been well for a while since."""
    if one.standing == "failing":
        return one.since_ms < FAILING_MS
    return one.standing != "recovering" or one.since_ms >= RECOVERED_MS


def _answers(one: Candidate) -> bool:
    """Whether the source answers there, as far as one knows."""
    return one.standing != "failing" or one.since_ms < FAILING_MS


@dataclass(frozen=True, slots=True)
class OwnStanding:
    """How this node stands with a source, and since when by its monotonic clock in ms."""

    standing: Standing
    since_ms: int

    def after(
        self, *, watching: bool, answers: bool | None, failing_ms: int, now_ms: int
    ) -> "OwnStanding":
        """Return how it stands now.

        `answers`: whether the source does, None as long as it has said nothing; `failing_ms`: since when it does not.
        Who failed for long is well again only after a while, and who stops watching while it failed is not forgotten
        for as long: others would otherwise take it for one that was never tried.
        """
        age_ms = now_ms - self.since_ms
        now = self.standing
        if not watching:
            rests = now in ("failing", "recovering") and age_ms < RECOVERED_MS
            if now == "failing" and age_ms < FAILING_MS:
                rests = False
            return self if rests else self._as("waiting", now_ms)
        if answers is None:
            if now == "starting" and age_ms >= FAILING_MS:
                return OwnStanding("failing", self.since_ms)
            return self if now in ("starting", "failing") else self._as("starting", now_ms)
        if not answers:
            if now == "failing":
                return self
            begun_ms = max(failing_ms, self.since_ms) if now == "recovering" else failing_ms
            return OwnStanding("failing", begun_ms or now_ms)
        if now == "failing" and age_ms >= FAILING_MS:
            return OwnStanding("recovering", now_ms)
        if now == "recovering" and age_ms < RECOVERED_MS:
            return self
        return self._as("ok", now_ms)

    def _as(self, standing: Standing, now_ms: int) -> "OwnStanding":
        return self if standing == self.standing else OwnStanding(standing, now_ms)
