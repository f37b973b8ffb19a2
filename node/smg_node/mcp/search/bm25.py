"""BM25 index of tools: which tools a query in words means, best first. Pure.

    score(tool) = sum of idf(word) * tf / (tf + k1 * (1 - b + b * words / words on average))
    idf(word)   = ln(1 + (tools - df + 0.5) / (df + 0.5))

with tf how often a tool's text has the word, and df how many tools have it: Robertson and Zaragoza, "The Probabilistic
Relevance Framework" (2009), with the idf that Lucene uses, which is never negative. A word of a tool's name counts
double. What a word adds to each tool's score is known when the index is made, so a query only adds numbers up.
The order in which tools come does not matter; equal scores are ordered by name.
"""

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Final

from smg_node.core.cooperative_steps import ITEM_WEIGHT, Steps
from smg_node.mcp.search.searched_tool import SearchedTool, ordered, tool_text
from smg_node.mcp.search.word_splitter import WordSplitter

K1: Final = 1.2
B: Final = 0.75
NAME_WEIGHT: Final = 2
FOUND_MAX: Final = 5
QUERY_CHARACTERS_MAX: Final = 1_000
"""What follows is not searched for: no question about a tool is longer."""
_QUERY_WORDS_MAX: Final = 64
_MANY: Final = 64
"""In fewer tools than this a word that most of them have may still be what somebody looks for."""
_SLICE: Final = 256
"""Words that are weighted in one step: they take about as long as one tool."""


class _Row:
    """The tools that have a word: their places, ascending, and first how often, then how much it adds."""

    __slots__ = ("adds", "places")

    def __init__(self) -> None:
        self.places = array("I")
        self.adds = array("d")


class ToolIndex:
    """Index over tools; it does not change. `tools` are those in it, by name."""

    __slots__ = ("_rows", "tools")

    def __init__(self, tools: tuple[SearchedTool, ...], rows: dict[str, _Row]) -> None:
        self.tools = tools
        self._rows = rows

    def search(self, query: str, limit: int = FOUND_MAX) -> tuple[SearchedTool, ...]:
        """Return the tools that have a word of the query, best first, at most so many; none for an empty query."""
        assert limit >= 1, "a search finds something or nothing"
        asked = dict.fromkeys(WordSplitter().words(query[:QUERY_CHARACTERS_MAX]))
        known = [word for word in list(asked)[:_QUERY_WORDS_MAX] if word in self._rows]
        rows = self._telling([self._rows[word] for word in sorted(known)])
        # The commonest word first: its row becomes the dictionary at once, and the rest is added to it.
        rows.sort(key=_held, reverse=True)
        scores = dict(zip(rows[0].places, rows[0].adds, strict=True)) if rows else {}
        for row in rows[1:]:
            for place, adds in zip(row.places, row.adds, strict=True):
                scores[place] = scores.get(place, 0.0) + adds
        return tuple(self.tools[place] for place in _best(scores, limit))

    def _telling(self, rows: list[_Row]) -> list[_Row]:
        """Return the rows without those that most tools are in, unless there are no others: `the` tells none apart."""
        most = len(self.tools) // 2 if len(self.tools) >= _MANY else len(self.tools)
        return [row for row in rows if len(row.places) <= most] or rows


def build_index(tools: Iterable[SearchedTool]) -> Steps[ToolIndex]:
    """Make the index of tools, at most `SEARCHED_TOOLS_MAX` of them, in steps of one tool each."""
    known = ordered(tools)
    rows: dict[str, _Row] = {}
    lengths = array("I")
    splitter = WordSplitter()
    for place, tool in enumerate(known):
        text = tool_text(tool)
        counts = Counter(splitter.words(text.rest))
        for word in splitter.words(text.name):
            counts[word] += NAME_WEIGHT
        lengths.append(counts.total())
        for word, times in counts.items():
            row = rows.get(word)
            if row is None:
                row = rows[word] = _Row()
            row.places.append(place)
            row.adds.append(times)
        yield ITEM_WEIGHT + len(text.rest)
    yield from _weigh(rows, lengths)
    return ToolIndex(known, rows)


def _weigh(rows: dict[str, _Row], lengths: "array[int]") -> Steps[None]:
    """Replace how often each tool has a word by what that adds to the tool's score."""
    mean = sum(lengths) / max(1, len(lengths))
    norms = [K1 * (1 - B + B * length / mean) for length in lengths] if mean else []
    weighed = 0
    for row in rows.values():
        held = len(row.places)
        idf = math.log(1 + (len(lengths) - held + 0.5) / (held + 0.5))
        pairs = zip(row.places, row.adds, strict=True)
        row.adds = array("d", [idf * times / (times + norms[place]) for place, times in pairs])
        weighed += held
        if weighed >= _SLICE:
            yield ITEM_WEIGHT
            weighed = 0


def _held(row: _Row) -> int:
    return len(row.places)


def _best(scores: dict[int, float], limit: int) -> list[int]:
    """Return the places with the highest scores, of equal ones those that come first."""
    # Two passes without a key function are four times as fast as one with it.
    highest = heapq.nlargest(limit, scores.values())
    if not highest:
        return []
    least = highest[-1]
    best = [(-score, place) for place, score in scores.items() if score >= least]
    return [place for _, place in heapq.nsmallest(limit, best)]
