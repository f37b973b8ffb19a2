"""The transcript runner tells the truth, and rewrites nothing else."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tools.transcripts import (
    REWRITE_VARIABLE,
    Block,
    Transcript,
    TranscriptError,
    parse,
    render,
    run_transcript,
)

UPPER = """\
# Shouting.
upper
hello

there
----
----
HELLO

THERE
----
----

# Arguments are words.
arguments a=1 b="two words" c
----
a='1' b='two words' c=''
"""


def upper(_: dict[str, str], text: str) -> str:
    return text.upper()


def arguments(given: dict[str, str], _: str) -> str:
    return " ".join(f"{key}={value!r}" for key, value in given.items())


COMMANDS = {"upper": upper, "arguments": arguments}


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "sample.txt"
    path.write_bytes(text.encode())
    return path


def test_a_true_transcript_passes_and_is_left_alone(tmp_path: Path) -> None:
    path = written(tmp_path, UPPER)
    before = path.stat().st_mtime_ns
    run_transcript(path, COMMANDS, rewrite=False)
    assert path.stat().st_mtime_ns == before


def test_a_false_transcript_fails_with_place_command_and_diff(tmp_path: Path) -> None:
    path = written(tmp_path, UPPER.replace("THERE", "where"))
    with pytest.raises(AssertionError) as failure:
        run_transcript(path, COMMANDS, rewrite=False)
    message = str(failure.value)
    assert "sample.txt:2" in message
    assert "-where" in message
    assert "+THERE" in message
    assert "--rewrite" in message


def test_an_empty_output_is_not_taken_for_a_match(tmp_path: Path) -> None:
    path = written(tmp_path, "upper\nabc\n----\n")
    with pytest.raises(AssertionError, match="ABC"):
        run_transcript(path, COMMANDS, rewrite=False)


def test_missing_output_at_a_block_between_others_is_seen(tmp_path: Path) -> None:
    path = written(tmp_path, "upper\nabc\n----\n\nupper\nx\n----\nX\n")
    with pytest.raises(AssertionError, match=r"sample\.txt:1"):
        run_transcript(path, COMMANDS, rewrite=False)


def test_trailing_spaces_and_carriage_returns_are_compared_exactly(tmp_path: Path) -> None:
    run_transcript(written(tmp_path, "upper\na \r\n----\nA \r\n"), COMMANDS, rewrite=False)
    with pytest.raises(AssertionError):
        run_transcript(written(tmp_path, "upper\na \n----\nA\n"), COMMANDS, rewrite=False)


def test_rewriting_replaces_outputs_and_keeps_everything_else(tmp_path: Path) -> None:
    path = written(tmp_path, UPPER.replace("THERE", "where").replace("a='1'", "nonsense"))
    path.chmod(0o644)
    run_transcript(path, COMMANDS, rewrite=True)
    assert path.read_text() == UPPER
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_rewriting_is_what_the_environment_says_when_the_caller_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "upper\nabc\n----\nold\n")
    monkeypatch.setenv(REWRITE_VARIABLE, "1")
    run_transcript(path, COMMANDS)
    assert path.read_text() == "upper\nabc\n----\nABC\n"
    monkeypatch.setenv(REWRITE_VARIABLE, "0")
    path.write_text("upper\nabc\n----\nold\n")
    with pytest.raises(AssertionError):
        run_transcript(path, COMMANDS)


def test_the_option_sets_the_variable(tmp_path: Path) -> None:
    tests = Path(__file__).parents[2]
    path = written(tmp_path, "upper\nabc\n----\nold\n")
    (tmp_path / "conftest.py").write_bytes((tests / "conftest.py").read_bytes())
    (tmp_path / "test_sample.py").write_text(
        "from pathlib import Path\n"
        "from support.tools.transcripts import run_transcript\n"
        "def test_it():\n"
        "    commands = {'upper': lambda _, text: text.upper()}\n"
        "    run_transcript(Path(__file__).with_name('sample.txt'), commands)\n"
    )

    def run(*options: str) -> int:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        environment = {**os.environ, "PYTHONPATH": str(tests), REWRITE_VARIABLE: "1"}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, check=False
        ).returncode

    assert run() == pytest.ExitCode.TESTS_FAILED, "a variable in the shell must not rewrite"
    assert run("--rewrite") == pytest.ExitCode.OK
    assert path.read_text() == "upper\nabc\n----\nABC\n"
    assert run() == pytest.ExitCode.OK


def test_an_unknown_command_names_the_known_ones(tmp_path: Path) -> None:
    path = written(tmp_path, "shout\n----\n")
    with pytest.raises(TranscriptError, match=r"sample\.txt:1.*shout.*arguments, upper"):
        run_transcript(path, COMMANDS, rewrite=False)


def test_an_error_in_a_command_keeps_its_type_and_gains_the_place(tmp_path: Path) -> None:
    def broken(_: dict[str, str], __: str) -> str:
        raise KeyError("lost")

    path = written(tmp_path, "broken at=1\n----\n")
    with pytest.raises(KeyError) as failure:
        run_transcript(path, {"broken": broken}, rewrite=False)
    assert "sample.txt:1" in failure.value.__notes__[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no block"),
        ("# only a comment\n", "no block"),
        ("upper\nno dashes\n", "no line of four dashes"),
        ("upper\n----\n----\nnever closed\n", "never closed"),
        ("upper a=1 a=2\n----\n", "given twice"),
        ('upper a="open\n----\n', "No closing quotation"),
    ],
)
def test_what_is_not_a_transcript_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(TranscriptError, match=why):
        run_transcript(written(tmp_path, text), COMMANDS, rewrite=True)


def test_an_output_that_no_fence_can_hold_is_refused_before_the_file_changes(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, "fence\n----\nold\n")
    with pytest.raises(TranscriptError, match="double fence"):
        run_transcript(path, {"fence": lambda _, __: "----\n----\n"}, rewrite=True)
    assert path.read_text() == "fence\n----\nold\n"


LINE = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12)
LINES = st.lists(st.one_of(st.just(""), st.just("----"), LINE), max_size=6)
WORD = st.text("abcdef", min_size=1, max_size=6)


def joined(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def holds_a_double_fence(lines: list[str]) -> bool:
    return any(a == b == "----" for a, b in pairwise([*lines, "----"]))


@given(
    st.lists(
        st.tuples(WORD, LINES.map(lambda lines: [x for x in lines if x != "----"]), LINES),
        max_size=4,
    )
)
def test_what_is_rendered_is_parsed_back(parts: list[tuple[str, list[str], list[str]]]) -> None:
    parts = [part for part in parts if not holds_a_double_fence(part[2])]
    blocks = [
        Block("\n# lead\n", head, joined(inputs), joined(outputs), 0)
        for head, inputs, outputs in parts
    ]
    text = render(Transcript(tuple(blocks), "\n# tail\n"))
    again = parse(text)
    assert [(b.lead, b.head, b.given, b.said) for b in again.blocks] == [
        (b.lead, b.head, b.given, b.said) for b in blocks
    ]
    assert again.tail == "\n# tail\n"
