"""Parse texts: answers to measure parsers with, and a vocabulary that tokenizes them like a
model.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from smg_node.tokens.decoding.token_table import TokenTable

_TEXT: Final = (
    "the ferry leaves at nine and a half past , two rooms are free in the old town . "
    "Ghent has a museum of design ; Turin one of cinema ( both close on Mondays ) . "
    "prices rise by 4.5 % when snow falls , so book early - or stay home ! Zürich is far . "
)
_WORDS: Final = tuple(_TEXT.split())
_TOKEN: Final = re.compile(r" ?[^\W\d_]+| ?\d{1,3}|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Speech:
    """An answer, and the formats that read it. `target_us` is their CPU budget for a token, beside
    no parsing at all.
    """

    name: str
    reasoning: str
    tools: str
    text: str
    markers: tuple[str, ...]
    target_us: float


def speeches(words: int, seed: int = 1) -> tuple[Speech, ...]:
    """Return the answers, of about so many words each."""
    prose = _prose(words, seed)
    think, hermes, tagged = (
        ("<think>", "</think>"),
        ("<tool_call>", "</tool_call>"),
        ("<function=",),
    )
    body = f'{{"name": "write", "arguments": {{"text": "{prose}", "times": 3}}}}'
    numbers = ", ".join(str(1000 + at) for at in range(words // 2))
    xml = f"<function=write>\n<parameter=text>\n{prose}\n</parameter>\n</function>"
    return (
        Speech("prose", "think", "hermes", prose, (), TEXT_US),
        Speech("a thought", "think", "hermes", f"<think>{prose}</think>Yes.", think, TEXT_US),
        Speech(
            "a string in JSON", "think", "hermes", f"<tool_call>{body}</tool_call>", hermes, CALL_US
        ),
        Speech(
            "numbers in JSON",
            "think",
            "hermes",
            f'<tool_call>{{"name": "sum", "arguments": {{"of": [{numbers}]}}}}</tool_call>',
            hermes,
            CALL_US,
        ),
        Speech(
            "a tagged string",
            "think",
            "qwen_xml",
            f"<tool_call>\n{xml}\n</tool_call>",
            (*hermes, *tagged),
            CALL_US,
        ),
        Speech("what looks like markers", "think", "hermes", _lookalikes(words, seed), (), CALL_US),
    )


TEXT_US: Final = 0.5
"""CPU time that reading may add to a token of plain text or of a thought, in microseconds."""
CALL_US: Final = 3.0
"""The same inside a call, and where markers are looked for."""


def garbage(openers: Iterable[str], characters: int, seed: int = 1) -> Mapping[str, str]:
    """Return the texts that are most expensive for a format with these openers."""
    marks = tuple(openers) or ("<",)
    calls = '{"name": "write", "arguments": {"text": "' + "\\n words, [1] <b> " * (characters // 16)
    return {
        "prose": _prose(characters // 5, seed)[:characters],
        "lookalikes": _lookalikes(characters // 4, seed)[:characters],
        "openers": "".join(f"{mark} is " for mark in marks * (characters // 8))[:characters],
        "one endless call": (marks[0] + calls)[:characters],
    }


def _prose(words: int, seed: int) -> str:
    rng = Random(seed)
    return " ".join(rng.choice(_WORDS) for _ in range(words))


def _lookalikes(words: int, seed: int) -> str:
    rng = Random(seed)
    odd = ("<", "a<b", "[1]", "{x}", "</", "<tool", "<thin", "]")
    return " ".join(rng.choice(odd if at % 4 == 0 else _WORDS) for at in range(words))


class Vocabulary:
    """Tokenizes texts into words with their space before them; a token is made when it is first
    needed. Markers are tokens of their own.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def ids(self, text: str, markers: Iterable[str]) -> list[int]:
        """Return the ids of a text."""
        split = re.compile("|".join([*map(re.escape, markers), _TOKEN.pattern]), re.DOTALL)
        return [
            self._ids.setdefault(found.group(), len(self._ids)) for found in split.finditer(text)
        ]

    def table(self) -> TokenTable:
        """Return what every id prints, of all texts so far."""
        return TokenTable([text.encode() for text in self._ids], special_ids=frozenset())
