"""Command line source: flags and their values, read along the schema of knobs.

Every knob has a long flag (`--http.body-max-bytes`, hyphens or underscores), some have short names or
names that users of other gateways know; all of them come from the declaration. Values follow after a
blank or `=`. A switch needs no value, and `--no-…` turns it off. A list takes all words up to the next
flag, and can be repeated. Of a knob given twice the last one counts, so that wrappers can be overridden.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from smg_node.config.schema.knob import ANY_NAME, LIST_KINDS, Knob, KnobPath, Schema
from smg_node.config.schema.problems import Problem, shown
from smg_node.config.schema.suggestions import nearest
from smg_node.config.schema.value_parser import SWITCH_WORDS, Entry

# What `smg-node` can be asked for, and what it says about that.
ACTIONS: Final[Mapping[str, str]] = {
    "--help": "Show the flags that matter most, and leave.",
    "--help-all": "Show every flag, and leave.",
    "--check": "Check the configuration and leave: exit code 0, or 2 and what is wrong.",
    "--print-config": "Print the settings in force as YAML, with each value's origin, and leave.",
    "--version": "Show the version, and leave.",
}
_SHORT_ACTIONS: Final = {"-h": "--help", "-V": "--version"}
CONFIG_FLAG: Final = "--config"


@dataclass(frozen=True, slots=True)
class Half:
    """One half of an address, given on its own: `--port 8000`."""

    path: KnobPath
    half: Literal["host", "port"]
    text: str
    place: str


@dataclass(slots=True)
class CommandLine:
    """Parsed command line, and what is wrong with it."""

    action: str = ""
    config: str | None = None
    entries: list[Entry] = field(default_factory=list)
    halves: list[Half] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def all_flags(schema: Schema) -> dict[str, Knob]:
    """Return every flag of every knob; those of named things are spelled with NAME."""
    flags: dict[str, Knob] = {}
    for knob in schema.knobs:
        for flag in knob.flags:
            assert flag not in flags, f"{flag} is declared twice"
            flags[flag] = knob
    return flags


def parse_flags(argv: Sequence[str], schema: Schema) -> CommandLine:
    """Return the parsed `argv` (without the program's name); never raises."""
    return _Parser(schema, argv).parse()


class _Parser:
    def __init__(self, schema: Schema, argv: Sequence[str]) -> None:
        self._schema = schema
        self._flags = all_flags(schema)
        self._mappings = [
            group.path[:-1] for group in schema.groups if group.path[-1:] == (ANY_NAME,)
        ]
        self._left = list(reversed(argv))
        self._words: dict[KnobPath, list[str]] = {}
        self._asked = CommandLine()

    def parse(self) -> CommandLine:
        while self._left:
            word = self._left.pop()
            if word in _SHORT_ACTIONS or word.startswith("--"):
                self._flag(_SHORT_ACTIONS.get(word, word))
            else:
                self._problem(word, _word_hint(word))
        return self._asked

    def _flag(self, word: str) -> None:
        spelled, equals, text = word.partition("=")
        value = text if equals else None
        if spelled in ACTIONS:
            self._action(spelled, value)
        elif spelled == CONFIG_FLAG:
            self._asked.config = self._one(spelled, value)
        elif (found := self._find(spelled)) is not None:
            self._knob(spelled, *found, value)
        elif (off := self._find_off(spelled)) is not None:
            if value is not None:
                self._problem(spelled, "it takes no value")
            self._say(off.path, "false", f"flag {spelled}")
        else:
            self._swallow()
            self._problem(spelled, f"there is no such flag{self._hint(spelled)}")

    def _action(self, spelled: str, value: str | None) -> None:
        if value is not None:
            self._problem(spelled, "it takes no value")
        # Asking for help is never an error, whatever else stands on the line.
        if self._asked.action not in ("--help", "--help-all"):
            self._asked.action = spelled

    def _find(self, spelled: str) -> tuple[Knob, KnobPath] | None:
        knob = self._flags.get(_canonical(spelled))
        if knob is not None and ANY_NAME not in knob.path:
            return knob, knob.path
        # `--models.NAME.context`: the name may hold dots and slashes, and is kept as it is.
        for mapping in self._mappings:
            head = f"{'.'.join(mapping)}."
            if not spelled.removeprefix("--").startswith(head):
                continue
            rest = spelled.removeprefix("--").removeprefix(head)
            for levels in (1, 2):
                name, *leaves = rest.rsplit(".", levels)
                path = (*mapping, name, *(leaf.replace("-", "_") for leaf in leaves))
                named = self._schema.at(path) if name and len(leaves) == levels else None
                if isinstance(named, Knob) and ANY_NAME in named.path:
                    return named, path
        return None

    def _find_off(self, spelled: str) -> Knob | None:
        """Return the switch that `--no-…` turns off."""
        canonical = _canonical(spelled)
        knob = self._flags.get("--" + canonical.removeprefix("--no-"))
        is_switch = knob is not None and knob.kind == "switch"
        return knob if canonical.startswith("--no-") and is_switch else None

    def _knob(self, spelled: str, knob: Knob, path: KnobPath, value: str | None) -> None:
        place = f"flag {spelled}"
        if knob.kind == "switch":
            if value is None and self._left and self._left[-1].lower() in SWITCH_WORDS:
                value = self._left.pop()
            self._say(path, "true" if value is None else value, place)
        elif knob.kind in LIST_KINDS:
            said = [value] if value is not None else self._many(spelled)
            self._words.setdefault(path, []).extend(said)
            self._say(path, list(self._words[path]), place)
        elif (text := self._one(spelled, value)) is None:
            return
        elif (half := knob.halves.get(_canonical(spelled))) is not None:
            self._asked.halves.append(Half(path, half, text, place))
        else:
            self._say(path, text, place)

    def _say(self, path: KnobPath, raw: object, place: str) -> None:
        kept = [entry for entry in self._asked.entries if entry.path != path]
        self._asked.entries = [*kept, Entry(path, raw, place)]

    def _one(self, spelled: str, value: str | None) -> str | None:
        """Return the value of a flag that takes one; None, and a problem, where there is none."""
        if value is None and self._left and not self._left[-1].startswith("--"):
            value = self._left.pop()
        if value is None:
            self._problem(spelled, "it needs a value")
        return value

    def _many(self, spelled: str) -> list[str]:
        said = self._swallow()
        if not said:
            self._problem(spelled, "it needs at least one value")
        return said

    def _swallow(self) -> list[str]:
        """Take the words up to the next flag."""
        said = []
        while self._left and not self._left[-1].startswith("-"):
            said.append(self._left.pop())
        return said

    def _hint(self, spelled: str) -> str:
        word = _canonical(spelled).strip("-")
        known = {flag.strip("-"): flag for flag in (*self._flags, *ACTIONS, CONFIG_FLAG)}
        # `--keepalive-s` means `--stream.keepalive-s`.
        leaves = {flag.rpartition(".")[2]: flag for flag in reversed(self._flags) if "." in flag}
        if word in leaves:
            return f"; did you mean {leaves[word]}?"
        if (near := nearest(word, known)) is not None:
            return f"; did you mean {known[near]}?"
        near = nearest(word.rpartition(".")[2], leaves)
        return f"; did you mean {leaves[near]}?" if near is not None else ""

    def _problem(self, subject: str, message: str) -> None:
        self._asked.problems.append(Problem(subject, message, "command line"))


def _canonical(spelled: str) -> str:
    return spelled.replace("_", "-")


def _word_hint(word: str) -> str:
    if word.startswith("-"):
        return "flags begin with two hyphens"
    if "://" in word:
        return f"this word belongs to no flag; workers are given by --worker {shown(word)[1:-1]}"
    return "this word belongs to no flag"
