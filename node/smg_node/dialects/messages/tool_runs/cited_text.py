"""Cited text: a text of an answer with what its sources are, as far as searches on this node's side found them."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from smg_node.core.generation.events import BlockEnd
from smg_node.dialects.messages.open_block import OpenText, citation_frame
from smg_node.dialects.openai.frames import json_line

Cite: TypeAlias = Callable[[BlockEnd], list[dict[str, Any]]]
"""Returns the citations of a text that is over."""
CITED_CHARACTERS_MAX: Final = 150
"""As much of a source as the official API cites."""


def citations_of(block: BlockEnd, found: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the citations of a text, one for each address; `found` are texts of sources by theirs."""
    citations: dict[str, dict[str, Any]] = {}
    for annotation in block.annotations:
        url = annotation.get("url")
        if annotation.get("type") != "url_citation" or type(url) is not str:
            continue
        citations.setdefault(
            url,
            {
                "type": "web_search_result_location",
                "url": url,
                "title": annotation.get("title"),
                "cited_text": found.get(url, "")[:CITED_CHARACTERS_MAX],
                "encrypted_index": "",
            },
        )
    return list(citations.values())


class CitedText(OpenText):
    """A text whose citations stand behind it."""

    __slots__ = ("_citations", "_cite")

    def __init__(self, index: int, cite: Cite) -> None:
        super().__init__(index, trims=True)
        self._cite = cite
        self._citations: list[dict[str, Any]] = []

    def end(self, event: BlockEnd, out: list[bytes]) -> bool:
        """End it, unless blanks wait."""
        self._citations = self._cite(event)
        return super().end(event, out)

    def stop(self, out: list[bytes]) -> None:
        """Write its citations and its end, if its start is out."""
        if self.shown:
            out += [citation_frame(self.index, json_line(one)) for one in self._citations]
        super().stop(out)
