"""Regex search: tools whose text matches a pattern, those whose name does first. Pure.

Models write patterns as for Python's `re.search`, and a pattern of a stranger must never take the node's time: `re` may
take an hour for twenty characters, and cannot be stopped. The engine of Rust that `pydantic_core` has, which
the settings bring along anyway, takes time in proportion to the text and knows all of that notation but
looking around and referring back; those are refused with its own words. It compiles nothing that `pattern_cost` finds
too large, and a search is over at its time limit, which is looked at between two tools: none takes more than
some milliseconds. Letters match in either case, so that `(?i)` may be left out; each field is matched by itself.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, cast

from smg_node.core.cooperative_steps import ITEM_WEIGHT, Steps
from smg_node.mcp.failures import plain_text
from smg_node.mcp.search.bm25 import FOUND_MAX
from smg_node.mcp.search.pattern_cost import is_small
from smg_node.mcp.search.searched_tool import SearchedTool, ToolText, ordered, tool_text

PATTERN_CHARACTERS_MAX: Final = 256
SEARCH_S_MAX: Final = 0.05
"""How long a caller lets a search go on."""
_REASON_CHARACTERS_MAX: Final = 200
_PYTHON_END: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\Z")

RefusalCode: TypeAlias = Literal["invalid_tool_input", "execution_time_exceeded"]
"""As Messages names what goes wrong in a search for tools."""


class SearchRefusal(NamedTuple):
    """Why a search found neither something nor nothing; `message` is for the model."""

    code: RefusalCode
    message: str


class _Matcher(Protocol):
    def isinstance_python(self, text: str, /) -> bool: ...


class ToolTexts:
    """Texts of tools, to be matched; they do not change. `tools` are those they are of, by name."""

    __slots__ = ("_texts", "tools")

    def __init__(self, tools: tuple[SearchedTool, ...], texts: tuple[ToolText, ...]) -> None:
        self.tools = tools
        self._texts = texts

    def search(
        self,
        pattern: str,
        limit: int = FOUND_MAX,
        *,
        expired: Callable[[], bool] = lambda: False,
    ) -> tuple[SearchedTool, ...] | SearchRefusal:
        """Return the tools that match, at most so many: by name first, then by description, parameters, server.

        Meant for a worker thread, with `expired` saying when `SEARCH_S_MAX` is over; it holds Python's lock for some
        milliseconds at a time at most.
        """
        assert limit >= 1, "a search finds something or nothing"
        matcher = _compiled(pattern)
        if isinstance(matcher, SearchRefusal):
            return matcher
        matches = matcher.isinstance_python
        found: list[list[int]] = [[], [], [], []]
        for place, (tool, text) in enumerate(zip(self.tools, self._texts, strict=True)):
            if expired():
                return SearchRefusal("execution_time_exceeded", "the pattern takes too long")
            if matches(text.name) or matches(tool.called):
                found[0].append(place)
                if len(found[0]) == limit:
                    break
            elif matches(text.description):
                found[1].append(place)
            elif matches(text.parameters):
                found[2].append(place)
            elif matches(text.server):
                found[3].append(place)
        places = [place for by_field in found for place in by_field]
        return tuple(self.tools[place] for place in places[:limit])


def build_texts(tools: Iterable[SearchedTool]) -> Steps[ToolTexts]:
    """Collect the texts of tools, at most `SEARCHED_TOOLS_MAX` of them, in steps of one tool each."""
    known = ordered(tools)
    texts: list[ToolText] = []
    for tool in known:
        texts.append(tool_text(tool))
        yield ITEM_WEIGHT + len(texts[-1].rest)
    return ToolTexts(known, tuple(texts))


def _compiled(pattern: str) -> "_Matcher | SearchRefusal":
    if not pattern.strip():
        return SearchRefusal("invalid_tool_input", "the pattern is empty")
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        why = f"the pattern has more than {PATTERN_CHARACTERS_MAX} characters"
        return SearchRefusal("invalid_tool_input", why)
    if not is_small(pattern):
        why = "the pattern repeats or nests too much; search for a word that names hold"
        return SearchRefusal("invalid_tool_input", why)
    # Imported by the first search: a library of 7 MB that a process may not have loaded yet.
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    spelled = "(?i)" + _PYTHON_END.sub(r"\1\\z", pattern)
    try:
        schema = core_schema.str_schema(pattern=spelled, regex_engine="rust-regex")
        return cast("_Matcher", SchemaValidator(schema))
    except (SchemaError, UnicodeEncodeError) as error:
        reason = plain_text(str(error).rpartition("error: ")[2].strip(), _REASON_CHARACTERS_MAX)
        return SearchRefusal("invalid_tool_input", f"the pattern cannot be read: {reason}")
