"""Laws of parsers: properties that hold for every text a parser reads, whatever it is.

never an exception, never an endless loop
the same pieces, ids too, whole, by characters, and in any other cutting
no empty piece; behind every call its arguments
nothing lost: where no call was found, all text comes back but for what a format may drop
"""

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from types import FrameType
from typing import Final, TypeAlias
from zlib import crc32

from smg_node.core.generation.pieces import Arguments, Call, Piece
from smg_node.parsers.reading.parser import Parser
from smg_node.parsers.reading.text_reader import RESCAN_MAX

Open: TypeAlias = Callable[[], Parser]

SECONDS_MAX: Final = 10
"""Processor time of reading one short answer once; it takes milliseconds."""
_BY_CHARACTERS_MAX: Final = 400


class EndlessError(Exception):
    """A parser took longer than any answer takes."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Text that may be missing where no call was found.

    `tokens` are dropped wherever they stand. `more` may be dropped or not, depending on what is
    around it; the order of what is left counts in any case. `empties` are wrappers around no calls:
    text with one of them is judged as mildly.
    """

    tokens: tuple[str, ...] = ()
    more: tuple[re.Pattern[str], ...] = ()
    empties: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken law: its name, the same for all cases of it, and what was seen."""

    law: str
    seen: str


def breach(text: str, parser: Open, losses: Losses, *, cuttings: int = 2) -> Breach | None:
    """Return the law that reading `text` breaks, None if it keeps them all.

    The random chunks depend on the text alone: a breach is reproducible.
    """
    try:
        with _limited():
            whole = read(parser(), [text])
            for chunks in _cut(text, cuttings):
                pieces = read(parser(), chunks)
                if pieces != whole:
                    how = "by characters" if len(chunks) == len(text) else f"{_sizes(chunks)}"
                    return Breach("cutting", f"whole {whole}\n{how} {pieces}")
    except EndlessError:
        return Breach("endless", f"more than {SECONDS_MAX} s")
    # Whatever it is, it must not be.
    except Exception as error:
        return Breach(f"raises {type(error).__name__}", _where(error))
    return _of_pieces(text, whole, losses)


def read(parser: Parser, chunks: Sequence[str]) -> list[Piece]:
    """Return the pieces a parser emits for a text that comes in `chunks`, neighbours of one kind
    joined.
    """
    said: list[Piece] = []
    for chunk in chunks:
        said += parser.feed(chunk)
    said += parser.finish()
    out: list[Piece] = []
    texts: list[list[str]] = []
    for piece in said:
        if isinstance(piece, Call):
            out.append(piece)
            texts.append([])
            continue
        assert piece.text, f"an empty piece among {said}"
        if not out or type(out[-1]) is not type(piece):
            out.append(type(piece)(""))
            texts.append([])
        texts[-1].append(piece.text)
    for piece, parts in zip(out, texts, strict=True):
        if not isinstance(piece, Call):
            piece.text = "".join(parts)
    return out


def _of_pieces(text: str, pieces: Sequence[Piece], losses: Losses) -> Breach | None:
    if (odd := _unsayable(pieces)) is not None:
        return Breach("no UTF-8", f"{odd!r}")
    called = False
    for piece, behind in pairwise([*pieces, None]):
        if isinstance(piece, Call):
            called = True
            if not isinstance(behind, Arguments):
                return Breach("a call without arguments", f"{pieces}")
    if called:
        return None
    said = "".join("" if isinstance(piece, Call) else piece.text for piece in pieces)
    empties = [empty for empty in losses.empties if empty.search(text)]
    if not losses.more and not empties and len(text) <= RESCAN_MAX:
        kept = _without(losses.tokens)("", text) if losses.tokens else text
        return None if said == kept else Breach("lost or left", f"{pieces}")
    gone = (
        *empties,
        *losses.more,
        *((re.compile(_either(losses.tokens)),) if losses.tokens else ()),
    )
    return None if accounted(text, said, gone) else Breach("lost or left", f"{pieces}")


def _unsayable(pieces: Sequence[Piece]) -> Piece | None:
    """Return the first piece with half a pair of surrogates."""
    for piece in pieces:
        try:
            (piece.name + piece.call_id if isinstance(piece, Call) else piece.text).encode()
        except UnicodeEncodeError:
            return piece
    return None


def _either(words: Sequence[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def _without(tokens: Sequence[str]) -> Callable[[str, str], str]:
    return re.compile(_either(tokens)).sub


def accounted(text: str, said: str, gone: Sequence[re.Pattern[str]]) -> bool:
    """Whether `said` is `text` without some of the places that a pattern of `gone` matches."""
    # By place in the text, the places in what was said that it may have come to.
    reached: dict[int, set[int]] = {0: {0}}
    for at in range(len(text)):
        places = reached.pop(at, None)
        if places is None:
            continue
        onward = {place + 1 for place in places if said[place : place + 1] == text[at]}
        if onward:
            reached.setdefault(at + 1, set()).update(onward)
        for pattern in gone:
            match = pattern.match(text, at)
            if match is not None and match.end() > at:
                reached.setdefault(match.end(), set()).update(places)
    return len(said) in reached.get(len(text), ())


def _cut(text: str, cuttings: int) -> Iterator[list[str]]:
    if len(text) <= _BY_CHARACTERS_MAX or cuttings > 2:
        yield list(text)
    rng = Random(crc32(text.encode()))
    for number in range(cuttings):
        longest = 2 if number % 4 == 3 else rng.choice((4, 12, 60))
        chunks: list[str] = []
        at = 0
        while at < len(text):
            size = rng.randrange(longest + 1)
            chunks.append(text[at : at + size])
            at += size
        yield chunks


def _sizes(chunks: Sequence[str]) -> str:
    return "in " + " ".join(str(len(chunk)) for chunk in chunks)


def _where(error: Exception) -> str:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = f" in {at.tb_frame.f_code.co_qualname}, line {at.tb_lineno}" if at is not None else ""
    return f"{error!r}{place}"


@contextmanager
def _limited() -> Iterator[None]:
    """Raise EndlessError if what is inside takes too much processor time; only a main thread can be interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(_signal: int, _frame: FrameType | None) -> None:
        raise EndlessError

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds(parser: Parser, text: str, size: int) -> float:
    """Return the processor time that reading `text` in chunks of `size` takes."""
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    began = time.process_time()
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()
    return time.process_time() - began


def shrunk(text: str, fails: Callable[[str], bool], *, tries: int = 3000) -> str:
    """Return the shortest text that leaving out parts of `text` leads to and that still `fails`.

    Halves first, then ever smaller parts, down to single characters; at most `tries` texts are looked at.
    """
    size = max(1, len(text) // 2)
    while size and tries > 0:
        at = 0
        shorter = False
        while at < len(text) and tries > 0:
            tries -= 1
            without = text[:at] + text[at + size :]
            if fails(without):
                text = without
                shorter = True
            else:
                at += size
        if not shorter or size > len(text):
            size = min(size // 2, max(1, len(text) // 2)) if size > 1 else 0
    return text
