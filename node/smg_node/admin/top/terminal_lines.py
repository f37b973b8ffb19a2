"""Terminal lines: styled spans, measured, cut and padded by display width. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from unicodedata import combining, east_asian_width

Style: TypeAlias = Literal["", "bold", "dim", "good", "warning", "bad", "chosen"]

_CODES: Final[dict[Style, str]] = {
    "": "",
    "bold": "1",
    "dim": "2",
    "good": "32",
    "warning": "33",
    "bad": "31",
    "chosen": "7",
}
_CUT: Final = "…"


@dataclass(frozen=True, slots=True)
class Span:
    """Text in one style."""

    text: str
    style: Style = ""


Line: TypeAlias = Sequence[Span]


def printable(text: str) -> str:
    """Return text without control characters: names come from tenants and engines."""
    if text.isprintable():
        return text
    return "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in text)


def width_of(text: str) -> int:
    """Return how many columns a printable text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(ch) else 2 if east_asian_width(ch) in ("W", "F") else 1 for ch in text
    )


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """Return the text in exactly so many columns: filled up, or cut with an ellipsis."""
    if width <= 0:
        return ""
    if width_of(text) > width:
        kept, room = [], width - 1
        for ch in text:
            room -= width_of(ch)
            if room < 0:
                break
            kept.append(ch)
        text = "".join(kept) + _CUT
    blank = " " * (width - width_of(text))
    return blank + text if right else text + blank


def cut_to(line: Line, width: int) -> Line:
    """Return as much of the line as so many columns have room for."""
    kept: list[Span] = []
    left = width
    for span in line:
        wide = width_of(span.text)
        if wide > left:
            kept.append(Span(fitted(span.text, left), span.style))
            break
        kept.append(span)
        left -= wide
    return kept


def plain(line: Line) -> str:
    """Return a line without its styles, and without blanks behind it."""
    return "".join(span.text for span in line).rstrip()


def styled(line: Line) -> str:
    """Return a line with its styles, as a terminal takes them."""
    return "".join(
        f"\x1b[{_CODES[span.style]}m{span.text}\x1b[0m" if span.style else span.text
        for span in line
    )


def joined(spans: Iterable[Span], between: str = "  ") -> list[Span]:
    """Return the spans with something between each two."""
    line: list[Span] = []
    for span in spans:
        if line:
            line.append(Span(between))
        line.append(span)
    return line
