"""Word splitter: words of names and descriptions as a search compares them, the same for tools and for queries. Pure.

A text is normalised (NFKC, case folded) and cut at whatever is neither letter nor digit. Names are cut further, at
changes of case and between letters and digits, and keep the whole beside the parts: `GitHub` is `git`, `hub`
and `github`. An English plural counts as its singular. Chinese, Japanese and Korean are written without blanks, or with
endings that differ: there every two characters that follow each other are a word, as Lucene's CJK analyzer has it.
Words like `the` are left out.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_SEGMENT: Final = re.compile(r"[^\W_]+")
_CJK: Final = re.compile(
    r"[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff]+"
)
_WORD_CHARACTERS_MAX: Final = 64
"""Longer ones are digests and data, which nobody searches for whole."""
_LONG_PLURALS: Final = ("sses", "shes", "xes", "nches", "rches", "tches")
_STOP_WORDS: Final = frozenset(
    _SEGMENT.findall(
        "a an and are as at be but by for if in into is it no not of on or such that the their"
        " then there these they this to was will with"
    )
)
"""Those of Lucene's analyzer for English: they tell nothing apart, and make texts look longer than they are."""
_KNOWN_MAX: Final = 20_000


class WordSplitter:
    """Splits texts into words. What it has split once it knows, so that a thousand tools cost what their vocabulary does."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}

    def words(self, text: str) -> Iterator[str]:
        """Yield the words of a text in their order."""
        known = self._known
        plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
        for segment in _SEGMENT.findall(plain):
            words = known.get(segment)
            if words is None:
                words = tuple(word for word in _words_of(segment) if word not in _STOP_WORDS)
                if len(known) < _KNOWN_MAX:
                    known[segment] = words
            yield from words


def _words_of(segment: str) -> Iterator[str]:
    if segment.isascii():
        yield from _parts(segment)
        return
    end = 0
    for run in _CJK.finditer(segment):
        yield from _parts(segment[end : run.start()])
        yield from _pairs(run[0])
        end = run.end()
    yield from _parts(segment[end:])


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for place in range(len(run) - 1):
        yield run[place : place + 2]


def _parts(segment: str) -> Iterator[str]:
    """Yield the parts of a name, and the whole where there is more than one."""
    if not segment:
        return
    begin, count = 0, 0
    for place in range(1, len(segment)):
        if _ends(segment, place):
            yield _folded(segment[begin:place])
            begin, count = place, count + 1
    if count:
        yield _folded(segment[begin:])
    yield _folded(segment)


def _ends(segment: str, place: int) -> bool:
    """Return whether a part ends before the character at a place: `aB`, `ABc` before the B, `a1`, `1a`."""
    before, here = segment[place - 1], segment[place]
    if before.isdigit() != here.isdigit():
        return True
    if not here.isupper():
        return False
    after = segment[place + 1 : place + 2]
    return not before.isupper() or after.islower()


def _folded(word: str) -> str:
    word = word[:_WORD_CHARACTERS_MAX].casefold()
    # After the S stemmer of Harman, "How effective is suffixing?" (1991): `queries`, `addresses`, `files`.
    if len(word) < 4 or word[-1] != "s" or word[-2] in "suia" or not word.isascii():
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(_LONG_PLURALS) else word[:-1]
