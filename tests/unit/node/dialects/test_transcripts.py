"""What exactly goes over the wire, in both directions; the files read like a tutorial.

Commands take the dialect's name as an argument. `read` has a body as input and prints the request,
without what is at its default. `present` has a body in its first line and one event per further line,
and prints the frames or, if the body does not ask for a stream, the answer.
"""

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from smg_node.core.answer import Collector
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    PromptEcho,
    TokenLogprob,
    TopLogprob,
    Usage,
)
from smg_node.core.grammar import Grammar
from smg_node.dialects.json_body import read_json
from smg_node.dialects.known import known_dialects
from smg_node.dialects.options import ReaderOptions
from support.transcripts import run_transcript

FOLDER = Path(__file__).parents[3] / "transcripts" / "dialects"


def read(args: dict[str, str], given: str) -> str:
    options = ReaderOptions(unknown_parameters="reject" if "reject" in args else "forward")
    dialect = known_dialects(options).get(args["dialect"])
    try:
        reading = dialect.read(read_json(given.encode()))
    except SmgError as error:
        return f"{error.status} {dialect.error_body(error, 'req_1').decode()}"
    return "\n".join([*told("request", reading.request), *told("view", reading.view)])


def told(path: str, noun: Any) -> list[str]:
    """Return one line per field that is not at its default."""
    lines: list[str] = []
    for field in dataclasses.fields(noun):
        value = getattr(noun, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if value == default:
            continue
        here = f"{path}.{field.name}"
        rows = value if isinstance(value, tuple) and value else (value,)
        for index, row in enumerate(rows):
            at = f"{here}[{index}]" if rows is value else here
            if dataclasses.is_dataclass(row):
                lines.extend(told(at, row) or [f"{at} = {type(row).__name__}()"])
            else:
                lines.append(f"{at} = {row!r}")
    return lines


def present(args: dict[str, str], given: str) -> str:
    dialect = known_dialects(ReaderOptions()).get(args["dialect"])
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


def event_of(words: list[str]) -> Event:
    match words:
        case ["begin", prompt_tokens]:
            return Begin("id-1", "llama", 1_700_000_000, int(prompt_tokens), "fp_1")
        case ["echo", choice, text]:
            return PromptEcho(int(choice), text, (1, 2))
        case ["start", choice, block, ("text" | "reasoning") as kind]:
            return BlockStart(int(choice), int(block), kind)
        case ["call", choice, block, name, call_id]:
            return BlockStart(int(choice), int(block), "call", name, call_id)
        case ["delta", choice, block, text, *logprobs]:
            tokens = tuple(token_of(spelled) for spelled in logprobs)
            return Delta(int(choice), int(block), text, max(1, len(tokens)), tokens)
        case ["end", choice, block, ("text" | "reasoning") as kind, text]:
            return BlockEnd(int(choice), int(block), kind, text)
        case ["called", choice, block, name, call_id, text]:
            return BlockEnd(int(choice), int(block), "call", text, name, call_id)
        case ["finish", choice, ("stop" | "length" | "tool_calls") as reason]:
            return Finish(int(choice), reason)
        case ["usage", prompt, completion, cached, reasoning]:
            return Usage(int(prompt), int(completion), int(cached), int(reasoning))
        case ["done"]:
            return End()
        case ["fail", kind, message]:
            return Fail(SmgError(ErrorKind(kind), message))
        case _:
            raise AssertionError(f"no such event: {words}")


def token_of(spelled: str) -> TokenLogprob:
    """Return the token spelled `text:logprob`, with itself as its only alternative."""
    text, _, logprob = spelled.rpartition(":")
    top = TopLogprob(1, text, text.encode(), float(logprob))
    return TokenLogprob(1, text, text.encode(), float(logprob), (top,))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_the_wire_says_what_is_written(path: Path) -> None:
    run_transcript(path, {"read": read, "present": present})


def test_there_are_transcripts() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} >= {"chat", "completions", "refusals"}


def test_an_event_of_no_known_spelling_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="no such event"):
        event_of(["nonsense"])
