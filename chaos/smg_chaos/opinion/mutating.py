"""Mutating of texts: small random damage, such as cut, doubled, reordered, inserted and replaced
parts.
"""

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, TypeAlias

SIZE_MAX: Final = 1500
"""Characters of a damaged answer: as long as is needed for one thing to be inside another."""

STRANGE: Final = (
    *("\\", "\\\\", "\\u", "\\u00", "\\ud83d", "\\ude00", "\\u00e9", "\\x", "\\'", '\\"', "\\n", "\\\n"),
    *("{", "}", "[", "]", "(", ")", "<", ">", "</", "/>", "=", ":", ",", ";", "'", '"', "'''", '"""', "`", "```json\n"),
    *("{}", "[]", "()", "{{", "}}", "[[", "]]", '""', "null", "None", "true", "False", "NaN", "-", "001", "1e999"),
    *('"name":', '"arguments":', '"parameters": "', '{"name":"list_rooms"}', "list_rooms()", "nobody(", "a=[{'b':"),
    *("find_museum", "functions.get_tide:0", "city", "max", "to=", "json", "final", "analysis", "call:", "name=", "type="),
    *("'\\ud83d'", '"\\ude00"', "['\\ud83d']", "{'a': '\\ud83d\\ude00'}", "3if", "1_0", "b'x'", "f'{x}'", "'a' 'b'", "(1,)", "{1: 2}"),
    *("&lt;", "&quot;", "&amp", "<![CDATA[", "]]>", "<!--", "<thinking>", "<think", "</thin", "<|", "|>", "<｜", "｜>"),
    *(" ", "\n", "\r\n", "\t", "\n\n\n", "\x00", "\x0b", "\x1c", "\x85", "\xa0", "\u2028", "\u3000", "\ufeff", "\u200b"),
    *("é", "e\u0301", "ß", "İ", "ſ", "٣", "²", "Ⅷ", "東京", "🙂", "👩‍👧", "𝒶", "＜", "〈", "∣", "‹", "“", "’", "，", "：", "ａ", "__"),
)  # fmt: skip
"""Fragments of JSON, Python and tags, halves of escapes, blanks of all kinds, and what looks like something else."""

_ALIKE: Final = {
    "<": "＜‹〈", ">": "＞›〉", "|": "｜∣¦", "｜": "|", "▁": "_", "_": "▁", "[": "［", "]": "］", "{": "｛",
    '"': "“'＂", "'": "’`\"", ":": "：", "=": "＝", "/": "\\", "\\": "/", "a": "а", "e": "е", "o": "о", " ": "\xa0\n",
}  # fmt: skip

_RUN: Final = re.compile(r"[^\s<>\[\](){}|｜:,=\"']+")

Parts: TypeAlias = Sequence[str]
_Mutation: TypeAlias = Callable[[str, Random, Parts, Parts], str]


def _span(text: str, rng: Random) -> tuple[int, int]:
    start = rng.randrange(len(text) + 1)
    size = rng.choice((1, 1, 2, 3, 8, 20, 80))
    return start, min(len(text), start + size)


def _cut(text: str, rng: Random, _marks: Parts, _others: Parts) -> str:
    start, end = _span(text, rng)
    return text[:start] + text[end:]


def _double(text: str, rng: Random, _marks: Parts, _others: Parts) -> str:
    start, end = _span(text, rng)
    return text[:end] + text[start:end] * rng.choice((1, 1, 2, 5)) + text[end:]


def _turn(text: str, rng: Random, _marks: Parts, _others: Parts) -> str:
    first, second = sorted((_span(text, rng), _span(text, rng)))
    if first[1] > second[0]:
        return text[: first[0]] + text[first[0] : first[1]][::-1] + text[first[1] :]
    between = text[first[1] : second[0]]
    return (
        f"{text[: first[0]]}{text[slice(*second)]}{between}{text[slice(*first)]}{text[second[1] :]}"
    )


def _truncate(text: str, rng: Random, _marks: Parts, _others: Parts) -> str:
    at = rng.randrange(len(text) + 1)
    return text[at:] if rng.random() < 0.3 else text[:at]


def _mark(text: str, rng: Random, marks: Parts, _others: Parts) -> str:
    mark = rng.choice(marks)
    if rng.random() < 0.4:
        start = rng.randrange(len(mark))
        mark = mark[start : start + rng.randrange(1, len(mark) + 1)]
    at = rng.randrange(len(text) + 1)
    return text[:at] + mark + text[at:]


def _no_mark(text: str, rng: Random, marks: Parts, _others: Parts) -> str:
    """Take a mark out, or give it another's place."""
    found = [mark for mark in marks if mark in text]
    if not found:
        return text
    other = rng.choice(marks) if rng.random() < 0.5 else ""
    return text.replace(rng.choice(found), other, rng.choice((1, -1)))


def _strange(text: str, rng: Random, _marks: Parts, _others: Parts) -> str:
    start, end = _span(text, rng)
    if rng.random() < 0.6:
        end = start
    return text[:start] + rng.choice(STRANGE) * rng.choice((1, 1, 1, 2, 9)) + text[end:]


def _value(text: str, rng: Random, _marks: Parts, _others: Parts) -> str:
    """Put something else where a value, a name or a key may be: a run without any bracket, blank or quote."""
    found = [match.span() for match in _RUN.finditer(text)]
    if not found:
        return text
    start, end = rng.choice(found)
    return text[:start] + rng.choice(STRANGE) + text[end:]


def _alike(text: str, rng: Random, _marks: Parts, _others: Parts) -> str:
    if not text:
        return text
    at = rng.randrange(len(text))
    alike = _ALIKE.get(text[at], text[at].swapcase() + chr(rng.randrange(32, 127)))
    return text[:at] + rng.choice(alike) + text[at + 1 :]


def _splice(text: str, rng: Random, _marks: Parts, others: Parts) -> str:
    other = rng.choice(others)
    start = rng.randrange(len(other) + 1)
    return text[: rng.randrange(len(text) + 1)] + other[start:]


def _nest(text: str, rng: Random, _marks: Parts, others: Parts) -> str:
    other = rng.choice((text, *others))
    at = rng.randrange(len(text) + 1)
    return text[:at] + other + text[at:]


_MUTATIONS: Final[tuple[_Mutation, ...]] = (
    *(_cut, _cut, _double, _turn, _truncate, _mark, _mark, _mark, _value),
    *(_no_mark, _strange, _strange, _strange, _alike, _splice, _nest),
)


def mutated(text: str, rng: Random, marks: Parts, others: Parts) -> str:
    """Return `text` damaged one to five times: with `marks`, none empty, and with parts of `others`."""
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        text = rng.choice(_MUTATIONS)(text, rng, marks, others)
    return text[:SIZE_MAX]
