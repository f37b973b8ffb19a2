"""The commands that a page of ours shows its readers, one by one, as a shell would read them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(smg-(?:admin|node|chaos) [^`]+)`")
_SUBSTITUTED = re.compile(r"\$\(([^()]*)\)")
_ENDS = frozenset({"&", "&&", ";", "|", "||"})
# Words of the shell in front of a command.
_KEYWORDS = frozenset({"export", "until", "do", "done"})
_ASSIGNED = re.compile(r"^[A-Za-z_]+=")
# The lines of a file that a block writes, up to the word alone that ends them.
_HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?\n.*?^\1$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a page: where its block or sentence begins, and its words without assignments and `…`."""

    line: int
    words: tuple[str, ...]


def languages(text: str) -> set[str]:
    """Return what the fenced blocks of a page say that they are; "" for one that says nothing."""
    return {match[1] for match in _FENCE.finditer(text)}


def shown_commands(text: str) -> list[Shown]:
    """Return every command in the `sh` blocks of a page, and those of ours that stand in its sentences."""
    found = []
    for match in _FENCE.finditer(text):
        if match[1] == "sh":
            line = text.count("\n", 0, match.start()) + 1
            found += [Shown(line, words) for words in _commands(match[2])]
    prose = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in _INLINE.finditer(prose):
        line = prose.count("\n", 0, match.start()) + 1
        found += [Shown(line, words) for words in _commands(match[1])]
    return found


def _commands(script: str) -> Iterator[tuple[str, ...]]:
    for inner in _SUBSTITUTED.findall(script):
        yield from _commands(inner)
    plain = _SUBSTITUTED.sub("SUBSTITUTED", _HERE_DOCUMENT.sub("", script))
    for line in plain.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;")
        lexer.whitespace_split = True
        yield from _split(list(lexer))


def _split(words: list[str]) -> Iterator[tuple[str, ...]]:
    command: list[str] = []
    for word in [*words, ";"]:
        if word not in _ENDS:
            command.append(word)
            continue
        if ">" in command:
            del command[command.index(">") :]
        while command and (command[0] in _KEYWORDS or _ASSIGNED.match(command[0])):
            command.pop(0)
        if command:
            yield tuple(part for part in command if part != "…")
        command = []
