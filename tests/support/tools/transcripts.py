"""Data-driven transcripts: what goes in, `----`, what comes out, in a file that reads like a tutorial.

A transcript is a list of blocks, after the manner of cockroachdb/datadriven and etcd-io/raft:

    # A comment, as long as it stands between blocks.
    split at=3 mode="two words" strict
    the input, any number of lines,
    up to the line of four dashes
    ----
    what the command said, up to a blank line

The first line names the command and its arguments; an argument without `=` has the empty string as
its value. Input may be empty and may hold blank lines. Output that holds a blank line, or a line of
four dashes, stands between double fences instead:

    ----
    ----
    first

    second
    ----
    ----

A final newline is added to output that has none, so an output is compared line by line; everything
else, trailing spaces and carriage returns included, is compared exactly. With `--rewrite` the file is
replaced by what the commands say now; comments and inputs stay as they are.
"""

import difflib
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

Command: TypeAlias = Callable[[dict[str, str], str], str]

REWRITE_VARIABLE: Final = "SMG_TRANSCRIPTS_REWRITE"
"""Set by `pytest --rewrite` for its process and its workers."""

_FENCE: Final = "----"


class TranscriptError(Exception):
    """A file that is not a transcript, or an output that no transcript can hold."""


@dataclass(frozen=True, slots=True)
class Block:
    """One exchange. `lead` is the comments and blank lines before it, `line` its place in the file."""

    lead: str
    head: str
    given: str
    said: str
    line: int


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole file; `tail` is what stands after the last block."""

    blocks: tuple[Block, ...]
    tail: str


def run_transcript(
    path: Path, commands: Mapping[str, Command], *, rewrite: bool | None = None
) -> None:
    """Run every block of `path`; raise AssertionError with a diff where an output differs.

    `commands` maps a name to what answers it: arguments and input in, output out. `rewrite` replaces
    the file instead; None means: as `pytest --rewrite` says.
    """
    transcript = parse(_read(path), name=str(path))
    if not transcript.blocks:
        raise TranscriptError(f"{path}: no block in it")
    answered = tuple(replace(b, said=_answer(path, b, commands)) for b in transcript.blocks)
    if rewrite is None:
        rewrite = os.environ.get(REWRITE_VARIABLE) == "1"
    if rewrite:
        _write(path, render(Transcript(answered, transcript.tail)))
        return
    diffs = [
        _diff(path, old, new)
        for old, new in zip(transcript.blocks, answered, strict=True)
        if old.said != new.said
    ]
    if diffs:
        advice = "Run pytest with --rewrite if the new output is right."
        raise AssertionError("\n".join([f"{path} says otherwise:", *diffs, advice]))


def _answer(path: Path, block: Block, commands: Mapping[str, Command]) -> str:
    name, arguments = head_of(path, block)
    command = commands.get(name)
    if command is None:
        known = ", ".join(sorted(commands))
        raise TranscriptError(f"{path}:{block.line}: no command {name!r}; there are: {known}")
    try:
        said = command(arguments, block.given)
    except Exception as error:  # re-raised at once; only the place is added
        error.add_note(f"in the transcript at {path}:{block.line}: {block.head}")
        raise
    return said if said.endswith("\n") or not said else said + "\n"


def head_of(path: Path, block: Block) -> tuple[str, dict[str, str]]:
    """Return the command of a block and its arguments; TranscriptError where they cannot be read."""
    try:
        name, *words = shlex.split(block.head)
    except ValueError as error:
        raise TranscriptError(f"{path}:{block.line}: {error}: {block.head}") from error
    arguments: dict[str, str] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key in arguments:
            raise TranscriptError(f"{path}:{block.line}: {key!r} is given twice: {block.head}")
        arguments[key] = value
    return name, arguments


def _diff(path: Path, old: Block, new: Block) -> str:
    lines = difflib.unified_diff(
        [repr(line)[1:-1] for line in old.said.splitlines()],
        [repr(line)[1:-1] for line in new.said.splitlines()],
        f"{path}:{old.line} (written)",
        "now",
        lineterm="",
    )
    return "\n".join([f"  {old.head}", *(f"  {line}" for line in lines)])


# ── The file ─────────────────────────────────────────────────────────────────


def parse(text: str, *, name: str = "transcript") -> Transcript:
    """Return the blocks of `text`; TranscriptError where it is not one. `render` is the inverse."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    blocks: list[Block] = []
    lead: list[str] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip() or lines[at].startswith("#"):
            lead.append(lines[at])
            at += 1
            continue
        start = at
        given, at = _given(lines, start, name)
        said, at = _said(lines, at, name)
        blocks.append(Block(_joined(lead), lines[start], _joined(given), _joined(said), start + 1))
        lead = []
    return Transcript(tuple(blocks), _joined(lead))


def _given(lines: list[str], start: int, name: str) -> tuple[list[str], int]:
    """Return the input lines of the block at `start`, and where its output starts."""
    for at in range(start + 1, len(lines)):
        if lines[at] == _FENCE:
            return lines[start + 1 : at], at + 1
    raise TranscriptError(f"{name}:{start + 1}: no line of four dashes after {lines[start]!r}")


def _said(lines: list[str], at: int, name: str) -> tuple[list[str], int]:
    """Return the output lines that start at `at`, and where the next block may start."""
    if lines[at : at + 1] != [_FENCE]:
        end = at
        while end < len(lines) and lines[end] != "":
            end += 1
        return lines[at:end], end
    for end in range(at + 1, len(lines) - 1):
        if lines[end] == lines[end + 1] == _FENCE:
            return lines[at + 1 : end], end + 2
    raise TranscriptError(f"{name}:{at + 1}: the double fence is never closed")


def render(transcript: Transcript) -> str:
    """Return the text of a transcript; TranscriptError for an output that no fence can hold."""
    return "".join(_rendered(block) for block in transcript.blocks) + transcript.tail


def _rendered(block: Block) -> str:
    lines = block.said.split("\n")[:-1]
    if "" not in lines and _FENCE not in lines:
        return f"{block.lead}{block.head}\n{block.given}{_FENCE}\n{block.said}"
    if any(a == b == _FENCE for a, b in pairwise([*lines, _FENCE])):
        raise TranscriptError(f"line {block.line}: the output itself holds a double fence")
    fence = f"{_FENCE}\n{_FENCE}\n"
    return f"{block.lead}{block.head}\n{block.given}{fence}{block.said}{fence}"


def _joined(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def _write(path: Path, text: str) -> None:
    """Replace `path` in one step, so that an interrupted rewrite leaves the old file."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as new:
        new.write(text.encode("utf-8"))
    Path(new.name).chmod(path.stat().st_mode & 0o777)
    Path(new.name).replace(path)
