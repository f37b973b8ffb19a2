"""Labelled sources: results of a search that a server wrote as lines for a reader, `Title:`, `URL:` and what follows. Pure.

    Title: …            1. …
    URL: …        or    URL: …
    Content: …          Summary: …

Servers of searches that were written for one model only give their results so. A result begins with its title, if an
address follows within a few lines; what stands before the first is no part of any. A page that shows such lines
itself can pass for several: who must keep to domains does not read this.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Final

from smg_node.core.generation.tool_serving import Source
from smg_node.mcp.builtin.domains import web_address
from smg_node.mcp.builtin.found_sources import SOURCES_MAX, TEXT_CHARACTERS_MAX, one_line
from smg_node.mcp.failures import plain_text

_CHARACTERS_MAX: Final = 1 << 20
_HEAD_LINES_MAX: Final = 5
"""Between a title and its address there are author and date at most."""
_LABELLED: Final = re.compile(
    r"\s*(?:[-*] +|\d{1,3}[.)] +|#+ +)?\**([A-Za-z][A-Za-z _-]{1,20}?)\**:\**(?:\s+(.*))?$"
)
_NUMBERED: Final = re.compile(r"\s*\d{1,3}[.)] +(.+)$")
_FIELDS: Final = {
    "title": "title",
    "name": "title",
    "url": "url",
    "link": "url",
    "source url": "url",
    "content": "text",
    "description": "text",
    "snippet": "text",
    "summary": "text",
    "text": "text",
    "highlights": "text",
    "raw content": "text",
    "date": "age",
    "published": "age",
    "published date": "age",
    "page age": "age",
}
_AGE_CHARACTERS_MAX: Final = 64


def labelled_sources(text: str) -> list[Source]:
    """Return the sources in a text; none where it is not written so."""
    lines = text[:_CHARACTERS_MAX].split("\n")
    spans = pairwise(chain(_begins(lines), (len(lines),)))
    found = (_source(lines[begin:end]) for begin, end in spans)
    # Read no further than there is room for: a server may send any number.
    return list(islice((source for source in found if source is not None), SOURCES_MAX))


def _begins(lines: Sequence[str]) -> Iterator[int]:
    """Yield where results begin: at a title that an address follows soon."""
    for place, line in enumerate(lines):
        field = _labelled(line)[0]
        if field == "title":
            near = [
                _labelled(next_line)[0] for next_line in lines[place + 1 : place + _HEAD_LINES_MAX]
            ]
            until = near.index("title") if "title" in near else len(near)
            if "url" in near[:until]:
                yield place
        elif (
            not field
            and _NUMBERED.match(line)
            and _labelled("".join(lines[place + 1 : place + 2]))[0] == "url"
        ):
            yield place


def _labelled(line: str) -> tuple[str, str]:
    """Return the field that a line is of, "" for none, and its value."""
    matched = _LABELLED.match(line)
    if matched is None:
        return "", ""
    label = matched[1].strip().lower().replace("_", " ").replace("-", " ")
    return _FIELDS.get(label, ""), matched[2] or ""


def _source(lines: Sequence[str]) -> Source | None:
    """Return one result; None where its address is none."""
    values: dict[str, str] = {}
    texts: list[str] = []
    if not _labelled(lines[0])[0] and (numbered := _NUMBERED.match(lines[0])):
        values["title"] = numbered[1]
        lines = lines[1:]
    for line in lines:
        field, value = _labelled(line)
        if field == "text" and not texts:
            texts.append(value)
        elif field and field != "text" and (not texts or (field not in values and field == "url")):
            values.setdefault(field, value)
        elif texts:
            # Within its text a result may have any lines, once its address is known.
            texts.append(line)
    url = web_address(values.get("url", ""))
    if not url:
        return None
    return Source(
        url=url,
        title=one_line(values.get("title", "").strip("* ")),
        text=plain_text("\n".join(texts).strip(" \n-="), TEXT_CHARACTERS_MAX),
        age=plain_text(values.get("age", ""), _AGE_CHARACTERS_MAX),
    )
