"""Corpus of real documents for long prompts: runs of lines of the standard library's source.

Every machine with a Python has ten megabytes of real code and prose. A document is a run of whole
lines that starts at a different place each time, so no two begin alike. The stored text is already
spelled as inside a JSON string: making a request out of it is a copy.
"""

import sysconfig
from array import array
from bisect import bisect_right
from pathlib import Path
from typing import Final

import msgspec

_LEFT_OUT: Final = frozenset(
    ["site-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__"]
)
# The step from one document's start to the next, as a share of the corpus: the golden ratio spreads
# any number of starts evenly.
_STEP: Final = 0.6180339887498949
_SOURCES_MAX: Final = 4000


class Corpus:
    """Text in JSON spelling, with the places where its lines start."""

    def __init__(self, content: bytes, starts: "array[int]") -> None:
        assert len(starts) >= 2, "a corpus has lines"
        self._content = content
        self._starts = starts

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return len(self._starts)

    def document(self, number: int, size: int) -> bytes:
        """Return about `size` bytes of whole lines in JSON spelling, without the quotes around.

        The same number gives the same document; different numbers start at different lines.
        """
        first = int(number * _STEP % 1.0 * self.lines)
        parts, left = [], size
        while left > 0:
            begin = self._starts[first]
            last = bisect_right(self._starts, begin + left) - 1
            if last <= first:  # one line is longer than all that is wanted, or the last one
                last = first + 1
            end = self._starts[last] if last < self.lines else len(self._content)
            parts.append(self._content[begin:end])
            left -= end - begin
            first = last if last < self.lines else 0
        return b"".join(parts)


def corpus_of(texts: list[str]) -> Corpus:
    """Return a corpus of these texts, in this order; ValueError if they hold fewer than two lines."""
    encode = msgspec.json.Encoder().encode
    lines = [encode(line)[1:-1] for text in texts for line in text.splitlines(keepends=True)]
    if len(lines) < 2:
        raise ValueError("a corpus needs lines")
    starts, at = array("Q"), 0
    for line in lines:
        starts.append(at)
        at += len(line)
    return Corpus(b"".join(lines), starts)


def standard_library(folder: Path | None = None) -> Corpus:
    """Return the corpus of a folder's Python sources: the standard library's unless one is named."""
    root = folder or Path(sysconfig.get_path("stdlib"))
    paths = sorted(
        path
        for path in root.rglob("*.py")
        if not _LEFT_OUT.intersection(path.relative_to(root).parts)
    )
    texts = []
    for path in paths[:_SOURCES_MAX]:
        try:
            texts.append(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue  # a source in another encoding is no loss
    return corpus_of(texts)


_PLAIN: Final = """
the gateway asks an engine and the engine answers while every token goes to a client who waits
for words about rivers ships storms clocks letters and small robots that learn to paint when
night comes down over a quiet town near some old harbour where nobody counts hours any more
"""


def prose(words: int) -> str:
    """Return that many plain words, the same each time: letters and blanks and full stops only."""
    known = _PLAIN.split()
    said, state = [], 12345
    for number in range(words):
        state = (state * 1103515245 + 12345) % (1 << 31)
        word = known[(state >> 16) % len(known)]
        said.append(word if number % 12 else "\n" + word.capitalize())
    return " ".join(said).replace(" \n", ". ").removeprefix("\n")
