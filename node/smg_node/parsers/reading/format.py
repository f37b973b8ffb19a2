"""Format declarations: the data that describe a family's reasoning and calls for `answer_grammar`.

A new format is one file that builds one of these and registers it (see `registry`), and one
transcript.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from smg_node.core.generation.request import Tool
from smg_node.parsers.reading.piece_writer import NewId
from smg_node.parsers.reading.text_reader import Machine, Reader

Start: TypeAlias = Literal["inside", "undecided", "content"]
"""Where an answer begins: inside a thought, before one that may come, or behind all of that."""
Implicit: TypeAlias = Literal["no", "anywhere", "line"]


@dataclass(frozen=True, slots=True)
class FormatRequest:
    """Fields of a request that matter to a format."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    """The declared functions by name."""

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a function's parameters, None if it is not declared or has none."""
        tool = self.tools.get(name)
        return None if tool is None else tool.parameters


NewNamed: TypeAlias = Callable[[NewId], NewId]


@dataclass(frozen=True)
class ThoughtFormat:
    """Format of a family's reasoning: between an opener and a closer.

    `trim`: one newline after the opener, all before the closer and all behind it are layout.
    `implicit`: a call's opener ends a thought that was not closed, anywhere or only at the start of a line.
    `interleaved`: a thought may begin at the start of any line of the answer.
    `frames` are tokens around the visible answer, dropped wherever they stand. `around` are the same as ordinary
    text, which an answer may hold too: the first counts where an answer begins ("" where a thought's closer is
    all that begins one), the second where it ends. `start` is where an answer begins whose prompt does not
    show it, None where the model then decides.
    """

    name: str
    openers: tuple[str, ...] = ()
    closers: tuple[str, ...] = ()
    trim: bool = False
    implicit: Implicit = "no"
    interleaved: bool = False
    frames: tuple[str, ...] = ()
    around: tuple[str, str] = ("", "")
    start: Start | None = None


THINK_OPTIONS: Final = ("implicit", "line", "interleaved", "trim")
"""What may be added to the name of a thought's format, each behind a `+`; see `varied`."""


def varied(thought: ThoughtFormat, options: Collection[str]) -> ThoughtFormat:
    """Return `thought` with the options of one family of models.

    `implicit`: a call's opener ends a thought; `line`: only at the start of a line. `interleaved` and
    `trim` as in `ThoughtFormat`. An option that begins with a colon is a suffix of the tags: with `:x` a
    thought may also be printed between `<think:x>` and `</think:x>`.
    """
    suffixes = sorted(option for option in options if option.startswith(":"))
    strange = sorted(set(options) - set(THINK_OPTIONS) - set(suffixes))
    assert not strange, f"nobody knows {strange}"
    implicit: Implicit = "line" if "line" in options else "anywhere"
    return replace(
        thought,
        openers=_with_suffixes(thought.openers, suffixes),
        closers=_with_suffixes(thought.closers, suffixes),
        implicit=implicit if {"implicit", "line"} & set(options) else thought.implicit,
        interleaved=thought.interleaved or "interleaved" in options,
        trim=thought.trim or "trim" in options,
    )


def _with_suffixes(tags: tuple[str, ...], suffixes: Sequence[str]) -> tuple[str, ...]:
    more = (f"{tag[:-1]}{suffix}>" for suffix in suffixes for tag in tags if tag.endswith(">"))
    return tuple(dict.fromkeys((*tags, *more)))


@dataclass(frozen=True, slots=True)
class Tag:
    """Call format for an engine's grammar: begin, the arguments, end.

    NAME in `begin` stands for the function's name, INDEX for any number. `style` is how the arguments are
    printed, in the words of xgrammar's tags. `form` is the variant of the calls (`Chosen.form`) whose models
    print them so, "" for all. `triggers` are what begins it: as soon as one is printed, the grammar holds.
    """

    begin: str
    end: str
    triggers: tuple[str, ...]
    style: str = "json"
    form: str = ""


ReadCall: TypeAlias = Callable[[Reader, FormatRequest, str], Machine[bool]]
"""Reads the calls at the cursor, which stands on the opener it is told, not moved over.

Returns False if it is no call: then nothing was said or dropped, and it becomes text.
"""


@dataclass(frozen=True)
class ToolFormat:
    """Format of a family's calls.

    `openers` begin one anywhere in the answer; `starts` only where nothing was said before it. `noise` are
    marks of the format that mean nothing where they stand alone and are dropped. `ids` makes the ids this
    family's templates want, from the maker of the default ones. `tags` spell a forced call, where an engine's
    grammar can be told of one.
    """

    name: str
    read: ReadCall
    openers: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    noise: tuple[str, ...] = ()
    ids: NewNamed | None = None
    tags: tuple[Tag, ...] = ()


@dataclass(frozen=True)
class JointFormat:
    """Format of a family with one grammar for reasoning and calls.

    `read` reads a whole answer. It is told where that starts, and whether calls are on: where they are not,
    what looks like one is text. It drops the format's own tokens. `openers` and `closers` are those of a
    thought at a prompt's end; `stops` are tokens that end an answer and must be read with it. `thought` and
    `answer` spell a thought and a visible answer of JSON, for families whose grammar must name them to let
    them be printed. With `encloses` a closer ends a thought wherever that began, so that one without an opener
    tells of an opener that was not seen; without it closers are headers of what comes next.
    """

    name: str
    read: "Callable[[Reader, FormatRequest, Start, bool], Machine[None]]"
    openers: tuple[str, ...] = ()
    closers: tuple[str, ...] = ()
    start: Start | None = None
    ids: NewNamed | None = None
    tags: tuple[Tag, ...] = ()
    stops: tuple[str, ...] = ()
    thought: Tag | None = None
    answer: Tag | None = None
    encloses: bool = False


def start_of(
    tail: str,
    openers: tuple[str, ...],
    closers: tuple[str, ...],
    *,
    fixed: Start | None = None,
    continued: bool = False,
) -> Start:
    """Return where an answer begins, by the prompt behind the last assistant's opening.

    Inside a thought if the prompt ends with an opener, whatever white space follows; behind it if it ends
    with a closer; else where the family's answers always do (`fixed`), or the model decides. Where a message
    is `continued`, `tail` is that message: a thought that is open in it stays open.
    """
    bare = tail.rstrip()
    if openers and bare.endswith(openers):
        return "inside"
    if closers and bare.endswith(closers):
        return "content"
    if continued and bare:
        opened = max((bare.rfind(opener) for opener in openers), default=-1)
        closed = max((bare.rfind(closer) for closer in closers), default=-1)
        if opened == closed:
            return fixed or "content"
        return "inside" if opened > closed else "content"
    return fixed or "undecided"
