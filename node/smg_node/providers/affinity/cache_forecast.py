"""Cache forecast: what a prompt is expected to read from one place's cache and to write to it, by the vendor's rules. Pure.

    marked vendors      read up to an earlier request's mark, if that is among the last 20 pieces before a mark of this one
    automatic vendors   read the whole blocks that they have, and keep all of the prompt

Bytes become tokens by a ratio that answers have shown. What is shorter than the vendor's least length is not cached.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from smg_node.engines.http.vendor_cache import LIFE_MS, LONG_MS, CachePlace, CacheRules
from smg_node.providers.affinity.cache_book import CacheBook, Found, State
from smg_node.providers.affinity.prompt_beginning import (
    BLOCK_BYTES,
    Mark,
    PromptBeginning,
)

LOOK_BACK: Final = 20
"""So many pieces before a mark are looked at for an earlier one."""


class Way(NamedTuple):
    """How a target is asked: in which API, with the client's own bytes or translated."""

    api: str
    native: bool


class Kept(NamedTuple):
    """A beginning that a call brings into a cache; `SEEN` if it is only sent."""

    hash: int
    size_bytes: int
    life_ms: int
    state: State


class Forecast(msgspec.Struct, frozen=True):
    """One call at one place, in tokens. `cached` are expected to be there with the probability `belief`.

    `written` are newly cached, `written_long` of them for an hour. `marked`: this node marks the end of the prompt.
    """

    place: CachePlace
    scope: int
    size_bytes: int
    prompt: float
    cached: float = 0.0
    belief: float = 0.0
    written: float = 0.0
    written_long: float = 0.0
    marked: bool = False
    found: Sequence[Found] = ()
    keeps: Sequence[Kept] = ()

    @property
    def read(self) -> float:
        """Tokens that are read, on the average."""
        return self.cached * self.belief


class Lookup:
    """One prompt before the book, at one moment; each kind of beginning is looked up once, for all places."""

    def __init__(self, book: CacheBook, prompt: PromptBeginning, now_ms: int) -> None:
        self._book = book
        self._prompt = prompt
        self._now_ms = now_ms
        self._blocks: Mapping[int, Sequence[Found]] | None = None
        self._ends: dict[tuple[Mark, ...], Mapping[int, Sequence[Found]]] = {}

    @property
    def size_bytes(self) -> int:
        """How long the prompt is."""
        return self._prompt.size_bytes

    def forecast(
        self, rules: CacheRules, place: CachePlace, scope: int, way: Way, tokens_per_byte: float
    ) -> Forecast:
        """Return what a call there is expected to come to. `scope` is the place's, or a part of it."""
        prompt = self._prompt
        if rules.marked or (prompt.explicit and way.native):
            return self._by_marks(rules, place, scope, way, tokens_per_byte)
        found = self._of_blocks().get(scope, ())
        life_ms = max(rules.life_ms, prompt.life_ms if way.native else 0)
        keeps = [
            Kept(prompt.hashes[stop - 1], stop * BLOCK_BYTES, life_ms, State.SENT)
            for stop in prompt.stops
            if stop * BLOCK_BYTES * tokens_per_byte >= rules.least_tokens
        ]
        return _forecast(rules, place, scope, tokens_per_byte, prompt.size_bytes, found, keeps)

    def _by_marks(
        self, rules: CacheRules, place: CachePlace, scope: int, way: Way, tokens_per_byte: float
    ) -> Forecast:
        prompt = self._prompt
        if not prompt.ends:
            return Forecast(place, scope, 0, 0.0)
        whole, marks = (Mark(len(prompt.ends) - 1, LIFE_MS),), prompt.marks if way.native else ()
        injected = not way.native and bool(rules.mark) and bool(self._of_ends(whole))
        if injected:
            marks = whole
        found = self._of_ends(marks).get(scope, ()) if marks else ()
        keeps = [
            Kept(end.hash, end.size_bytes, mark.life_ms, State.SENT)
            for mark in marks
            for end in (prompt.ends[mark.piece],)
            if end.size_bytes * tokens_per_byte >= rules.least_tokens
        ]
        last = prompt.ends[-1]
        long_enough = last.size_bytes * tokens_per_byte >= rules.least_tokens
        if not marks and not way.native and rules.mark and long_enough:
            keeps = [Kept(last.hash, last.size_bytes, LIFE_MS, State.SEEN)]
        size = prompt.size_bytes
        told = _forecast(rules, place, scope, tokens_per_byte, size, found, keeps)
        return msgspec.structs.replace(told, marked=True) if injected else told

    def _of_blocks(self) -> Mapping[int, Sequence[Found]]:
        if self._blocks is None:
            hashes = self._prompt.hashes
            longest_first = (
                (hashes[at], (at + 1) * BLOCK_BYTES) for at in range(len(hashes) - 1, -1, -1)
            )
            self._blocks = self._book.among(longest_first, self._now_ms)
        return self._blocks

    def _of_ends(self, marks: tuple[Mark, ...]) -> Mapping[int, Sequence[Found]]:
        known = self._ends.get(marks)
        if known is None:
            ends = self._prompt.ends
            near = {
                at
                for mark in marks
                for at in range(max(0, mark.piece - LOOK_BACK + 1), mark.piece + 1)
            }
            pairs = ((ends[at].hash, ends[at].size_bytes) for at in sorted(near, reverse=True))
            known = self._ends[marks] = self._book.among(pairs, self._now_ms)
        return known


def _forecast(
    rules: CacheRules,
    place: CachePlace,
    scope: int,
    tokens_per_byte: float,
    size_bytes: int,
    found: Sequence[Found],
    keeps: Sequence[Kept],
) -> Forecast:
    """Return the forecast for the longest beginning that is there, and the longest that is kept."""
    there = [
        one
        for one in found
        if one.belief and one.size_bytes * tokens_per_byte >= rules.least_tokens
    ]
    cached = there[0].size_bytes * tokens_per_byte if there else 0.0
    belief = there[0].belief * rules.weight if there else 0.0
    sent = [one for one in keeps if one.state is not State.SEEN]
    ends = [one.size_bytes * tokens_per_byte for one in sent]
    written = max(0.0, max(ends, default=0.0) - cached)
    long_ends = [end for one, end in zip(sent, ends, strict=True) if one.life_ms >= LONG_MS]
    return Forecast(
        place,
        scope,
        size_bytes,
        size_bytes * tokens_per_byte,
        cached,
        belief,
        written,
        min(written, max(0.0, max(long_ends, default=0.0) - cached)),
        found=found,
        keeps=keeps,
    )
