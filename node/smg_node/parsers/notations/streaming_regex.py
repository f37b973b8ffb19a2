"""Streaming regex: regular expressions of checkpoints, compiled to steps that read arriving text in
one pass.

A general expression may have to look back, and what it finds may change with text that has yet to come. Those
that delimit fields of answers are simpler: words, runs of characters of one class, `.*?` up to a word, optional
words, and names for what was found. Such a one becomes a list of steps; any other is refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product, zip_longest
from typing import Final, TypeAlias

from smg_node.parsers.reading.text_reader import NAME_MAX, Machine, Reader

_CLASSES: Final = ("\\w", "\\W", "\\d", "\\D", "\\s", "\\S")
_CONTROLS: Final = {"\\n": "\n", "\\t": "\t", "\\r": "\r"}
_SPECIAL: Final = frozenset("^$*+?{}[]|().")
_LITERALS_MAX: Final = 16
_ATOM: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_NAMED: Final = re.compile(r"\(\?P<(\w+)>")


class UnreadableAnchorError(ValueError):
    """This expression cannot be read in one pass."""


@dataclass(frozen=True, slots=True)
class Word:
    """Characters as they are; an optional word may be missing."""

    text: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """As many characters of one class as there are, at least `least`; kept under `name` if it has one."""

    run: re.Pattern[str]
    least: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Anything:
    """Whatever stands before the word that follows; kept under `name` if it has one."""

    name: str = ""


Step: TypeAlias = Word | Run | Anything


def steps_of(pattern: str) -> tuple[Step, ...]:
    """Return the steps of an expression; UnreadableAnchorError for one that has none."""
    steps, _ = _sequence(pattern, "")
    # White space before a closer is the value's in one pass; its reader takes it off.
    steps = [
        step
        for at, step in enumerate(steps)
        if not (_blank(step) and at > 0 and isinstance(steps[at - 1], Anything))
    ]
    for step, after in zip_longest(steps, steps[1:]):
        if isinstance(step, Run) and isinstance(after, Word) and step.run.fullmatch(after.text[0]):
            raise UnreadableAnchorError(f"{pattern!r} would have to look back")
        if isinstance(step, Run) and isinstance(after, Run):
            raise UnreadableAnchorError(f"{pattern!r} does not say where a run ends")
        if isinstance(step, Anything) and not (isinstance(after, Word) and not after.optional):
            raise UnreadableAnchorError(f"{pattern!r} does not say what ends `.*?`")
    return tuple(steps)


def words_of(pattern: str) -> tuple[str, ...]:
    """Return all texts that an expression matches, less optional white space at its ends, the longest first.

    UnreadableAnchorError where they cannot be counted.
    """
    steps = list(steps_of(pattern))
    while steps and _blank(steps[0]):
        del steps[0]
    while steps and _blank(steps[-1]):
        del steps[-1]
    parts = [
        ("", step.text) if step.optional else (step.text,)
        for step in steps
        if isinstance(step, Word)
    ]
    if len(parts) != len(steps) or 2 ** sum(len(part) > 1 for part in parts) > _LITERALS_MAX:
        raise UnreadableAnchorError(f"{pattern!r} is more than a few words")
    found = {"".join(one) for one in product(*parts)}
    if "" in found:
        raise UnreadableAnchorError(f"{pattern!r} matches nothing at all")
    return tuple(sorted(found, key=lambda word: (-len(word), word)))


def follow(reader: Reader, steps: Sequence[Step], found: dict[str, str]) -> Machine[bool]:
    """Move over what `steps` match at the cursor; return whether they do. Named parts go into `found`."""
    wanted = ""
    for at, step in enumerate(steps):
        if isinstance(step, Anything):
            after = steps[at + 1]
            assert isinstance(after, Word)
            text = yield from _before(reader, after.text)
            if text is None:
                return False
            wanted = step.name
            if wanted:
                found[wanted] = text
        elif isinstance(step, Word):
            if not (yield from reader.have(step.text)) and not step.optional:
                return False
        else:
            text = yield from reader.pattern(step.run)
            if len(text) < step.least:
                return False
            if step.name:
                found[step.name] = text
    return True


def _blank(step: Step) -> bool:
    return isinstance(step, Run) and step.run.pattern == "(?:\\s)*" and not step.name


def _before(reader: Reader, word: str) -> Machine[str | None]:
    """Move to the next `word` and return what stands before it; None if that is longer than a name may be."""
    while True:
        start = reader.at
        end = reader.buffer.find(word, start, start + NAME_MAX + len(word))
        if end >= 0:
            reader.at = end
            return reader.buffer[start:end]
        if reader.ended or len(reader.buffer) - start >= NAME_MAX + len(word):
            return None
        yield


def _sequence(pattern: str, end: str) -> tuple[list[Step], str]:
    """Return the steps up to `end`, and what stands behind it."""
    steps: list[Step] = []
    while pattern and not (end and pattern.startswith(end)):
        step, pattern = _step(pattern)
        last = steps[-1] if steps else None
        if (
            isinstance(step, Word)
            and isinstance(last, Word)
            and not (step.optional or last.optional)
        ):
            steps[-1] = Word(last.text + step.text)
        else:
            steps.append(step)
    if end and not pattern:
        raise UnreadableAnchorError("a bracket is not closed")
    return steps, pattern.removeprefix(end)


def _step(pattern: str) -> tuple[Step, str]:
    if named := _NAMED.match(pattern):
        inner, rest = _sequence(pattern[named.end() :], ")")
        if len(inner) != 1 or isinstance(inner[0], Word) or inner[0].name:
            raise UnreadableAnchorError(f"(?P<{named[1]}>…) is no run of characters")
        step = inner[0]
        return (
            Anything(named[1])
            if isinstance(step, Anything)
            else Run(step.run, step.least, named[1])
        ), rest
    if pattern.startswith("(?:"):
        inner, rest = _sequence(pattern[3:], ")")
        if len(inner) != 1 or not isinstance(inner[0], Word) or inner[0].optional:
            raise UnreadableAnchorError("(?:…) is no word")
        return Word(inner[0].text, rest.startswith("?")), rest.removeprefix("?")
    if pattern.startswith(".*?"):
        return Anything(), pattern[3:]
    return _atom(pattern)


def _atom(pattern: str) -> tuple[Step, str]:
    match = _ATOM.match(pattern)
    assert match is not None, "something is left"
    atom, rest = match.group(), pattern[match.end() :]
    one_of = atom in _CLASSES or (atom.startswith("[") and len(atom) > 1)
    if not one_of and atom in _SPECIAL:
        raise UnreadableAnchorError(f"{atom!r} is not understood at {pattern[:32]!r}")
    if rest[:1] in ("*", "+") and rest[1:2] not in ("?", "+"):
        source = atom if one_of else re.escape(_text(atom))
        return Run(_compiled(source), int(rest[0] == "+")), rest[1:]
    if one_of or rest[:1] in ("*", "+", "{"):
        raise UnreadableAnchorError(f"{pattern[:32]!r} is not understood")
    if rest.startswith("?"):
        return Word(_text(atom), optional=True), rest[1:]
    return Word(_text(atom)), rest


def _compiled(source: str) -> re.Pattern[str]:
    try:
        return re.compile(f"(?:{source})*")
    except re.error as error:
        raise UnreadableAnchorError(f"{source!r}: {error}") from error


def _text(atom: str) -> str:
    if atom in _CONTROLS:
        return _CONTROLS[atom]
    if atom.startswith("\\") and atom[1].isalnum():
        raise UnreadableAnchorError(f"{atom!r} is not understood")
    return atom.removeprefix("\\") if len(atom) > 1 else atom
