"""A page as somebody who follows it sees it: blocks to be typed, in order, and what the page says comes of them.

What the page's reader does not see says how a block is tried: a comment in front of it,

- `<!-- not run: why -->`: it cannot be tried here;
- `<!-- stays: REGEX -->`: it goes on running in a terminal of its own, and has begun when it says this;
- `<!-- ends -->`: everything that still runs ends first, and the machine is as new.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK: Final = re.compile(r"<!-- (not run|stays|ends)(?:: (.*?))? -->")
_RUN: Final = frozenset({"sh", "python"})
_WILD: Final = re.compile(r"(…)|([\d.,:]*\d[\d.,:]*|\b[0-9a-f]{8,}\b)|(\s+)")


@dataclass(frozen=True, slots=True)
class Block:
    """Something to be typed, and how it is tried; `shown` is what the page says that it prints, "" if nothing."""

    page: str
    line: int
    language: str
    text: str
    shown: str
    not_run: str
    stays: str
    ends: bool

    @property
    def place(self) -> str:
        """Where it stands, as editors take it."""
        return f"{self.page}:{self.line}"


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """Yield every block of a page that is to be typed, in its order."""
    fences = list(_FENCE.finditer(text))
    begun = 0
    for number, fence in enumerate(fences):
        marks = {mark[1]: mark[2] or "" for mark in _MARK.finditer(text[begun : fence.start()])}
        begun = fence.end()
        if fence[1] not in _RUN:
            assert not marks, f"{page}: a comment says how to try what nobody types: {marks}"
            continue
        after = fences[number + 1] if number + 1 < len(fences) else None
        follows = after is not None and not text[fence.end() : after.start()].strip()
        yield Block(
            page=page,
            line=text.count("\n", 0, fence.start()) + 1,
            language=fence[1],
            text=fence[2],
            shown=after[2] if after is not None and after[1] == "text" and follows else "",
            not_run=marks.get("not run", ""),
            stays=marks.get("stays", ""),
            ends="ends" in marks,
        )


def has_shape(said: str, shown: str) -> bool:
    """Return whether what was said looks as the page shows it.

    `…` stands for anything, a number for any number, a hexadecimal id for any such id, and blanks for any blanks.
    """
    pattern = ""
    at = 0
    text = shown.strip()
    for wild in _WILD.finditer(text):
        pattern += re.escape(text[at : wild.start()])
        pattern += ".*?" if wild[1] else r"[0-9a-f.,:]+" if wild[2] else r"\s+"
        at = wild.end()
    return re.fullmatch(pattern + re.escape(text[at:]), said.strip(), re.DOTALL) is not None
