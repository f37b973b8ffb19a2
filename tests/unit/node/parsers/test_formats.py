"""Every format, by its transcript: what it means, and that no cutting changes it."""

from pathlib import Path

import pytest

from smg_node.core.generation.pieces import Arguments, Call, Piece
from smg_node.parsers.selection.registry import known_joint, known_thoughts, known_tools
from support.answers.parser_cases import (
    FOLDER,
    Case,
    case_of,
    cases,
    check_cuts,
    check_prefixes,
    joined,
    pieces_of,
    shown,
)
from support.tools.transcripts import run_transcript

FILES = sorted(FOLDER.glob("*.txt"))


def _ids(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", FILES, ids=_ids)
def test_a_format_means_what_its_transcript_says_in_every_cutting(path: Path) -> None:
    def parse(arguments: dict[str, str], given: str) -> str:
        return shown(check_cuts(case_of(arguments, given, path.name)))

    run_transcript(path, {"parse": parse})


@pytest.mark.parametrize("path", FILES, ids=_ids)
def test_every_beginning_of_an_answer_is_read_alike_in_one_go_and_by_characters(path: Path) -> None:
    for case in cases(path.stem):
        check_prefixes(case)


@pytest.mark.parametrize("path", FILES, ids=_ids)
def test_no_call_is_without_arguments(path: Path) -> None:
    for case in cases(path.stem):
        pieces = pieces_of(case, [case.text])
        for at, piece in enumerate(pieces):
            if isinstance(piece, Call):
                after = pieces[at + 1] if at + 1 < len(pieces) else None
                assert isinstance(after, Arguments), f"{case.label}: {piece} has no arguments"


@pytest.mark.parametrize("path", FILES, ids=_ids)
def test_two_streams_of_one_format_do_not_touch_each_other(path: Path) -> None:
    both = list(cases(path.stem))
    for one, other in zip(both, [*both[1:], *both[:1]], strict=True):
        _interleaved(one, other)


def _interleaved(one: Case, other: Case) -> None:
    first, second = one.scanner(), other.scanner()
    said: list[Piece] = []
    for at in range(0, max(len(one.text), len(other.text)), 3):
        said += first.feed(one.text[at : at + 3])
        second.feed(other.text[at : at + 3])
    said += first.finish()
    second.finish()
    assert shown(joined(said)) == shown(pieces_of(one, [one.text]))


def test_every_format_has_a_transcript() -> None:
    told = {
        name
        for case in cases()
        for name in (case.thoughts.split("+")[0], case.joint, *case.tools.split(","))
    }
    known = {*known_thoughts(), *known_tools(), *known_joint()} - {"plain"}
    assert known <= told, f"no transcript reads {sorted(known - told)}"
