"""What exactly goes over the wire, in both directions; the files read like a tutorial.

Commands take the dialect's name as an argument. `read` has a body as input and prints the request,
without what is at its default. `present` has a body in its first line and one event per further line,
and prints the frames or, if the body does not ask for a stream, the answer.
"""

import shlex
from pathlib import Path

import msgspec
import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.answer import Collector
from smg_node.core.generation.event_grammar import Grammar
from smg_node.dialects.json_body import read_json
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.registry import Dialects
from support.answers.transcript_lines import event_of, told
from support.tools.transcripts import run_transcript

FOLDER = Path(__file__).parents[3] / "transcripts" / "dialects"


def read(args: dict[str, str], given: str) -> str:
    options = ReaderOptions(unknown_parameters="reject" if "reject" in args else "forward")
    dialect = Dialects(options)[args["dialect"]]
    try:
        reading = dialect.read(read_json(given.encode()))
    except SmgError as error:
        return f"{error.status} {dialect.error_body(error, 'req_1').decode()}"
    return "\n".join([*told("request", reading.request), *told("view", reading.view)])


def present(args: dict[str, str], given: str) -> str:
    dialect = Dialects(ReaderOptions())[args["dialect"]]
    body, *lines = given.splitlines()
    reading = dialect.read(read_json(body.encode()))
    presenter = dialect.presenter(reading)
    events = [event_of(shlex.split(line)) for line in lines]
    Grammar(reading.request.choices).feed(events)
    if reading.request.stream:
        return "".join(presenter.frames([event]).decode() for event in events)
    collector = Collector(reading.request.choices)
    collector.feed(events)
    answer = presenter.answer(collector.answer())
    return msgspec.json.format(answer, indent=2).decode()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_the_wire_says_what_is_written(path: Path) -> None:
    run_transcript(path, {"read": read, "present": present})


def test_there_are_transcripts() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} >= {"chat", "completions", "refusals"}


def test_an_event_of_no_known_spelling_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="no such event"):
        event_of(["nonsense"])
