"""Counted gateway: runs a node of this tree and counts interpreter instructions from one request to
a later one.

    python -m smg_chaos.bench.figures.counted_gateway FILE WARM COUNT -- the node's arguments

From the request behind the first WARM on, COUNT requests are counted, and what was counted is in
FILE (see `Counted`) as soon as the last of them begins. Only what the loop's thread executes
counts, and only in functions that were called meanwhile. A traced node is twenty times slower, so
whatever it does by the clock is counted twenty times as often.
"""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import msgspec

_AWAY: Final = 5
"""Arguments before those of the node."""


class Function(msgspec.Struct, frozen=True):
    """Counts of one function: `calls` (of a coroutine, its resumptions), and instructions of its
    own.
    """

    file: str
    line: int
    name: str
    calls: int
    instructions: int


class Counted(msgspec.Struct, frozen=True):
    """Counts of all functions over a number of requests."""

    requests: int
    functions: list[Function]


class Tracer:
    """Counts instructions by function, from `begin` to `end`."""

    def __init__(self) -> None:
        self._calls: Counter[CodeType] = Counter()
        self._instructions: Counter[CodeType] = Counter()

    def begin(self) -> None:
        """Count in this thread, in functions that are called from now on."""
        sys.settrace(self._called)

    def end(self) -> list[Function]:
        """Stop, and return what was counted, most instructions first."""
        sys.settrace(None)
        return [
            Function(
                code.co_filename, code.co_firstlineno, code.co_name, self._calls[code], instructions
            )
            for code, instructions in self._instructions.most_common()
        ]

    def _called(self, frame: FrameType, event: str, _argument: Any) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self._calls[frame.f_code] += 1
        return self._within

    def _within(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "opcode":
            self._instructions[frame.f_code] += 1
        return self._within


def counting(
    serve: Callable[..., Awaitable[bool]], file: Path, warm: int, count: int
) -> Callable[..., Awaitable[bool]]:
    """Return a wrapper of `serve`, which answers one request, that counts and writes the counts to
    a file.
    """
    counter = Tracer()
    seen = 0

    def counted(*arguments: Any) -> Awaitable[bool]:
        nonlocal seen
        seen += 1
        if seen == warm + 1:
            counter.begin()
        elif seen == warm + count + 1:
            found = msgspec.json.encode(Counted(count, counter.end()))
            beside = file.with_suffix(".part")
            beside.write_bytes(found)
            beside.replace(file)
        return serve(*arguments)

    return counted


def main() -> int:
    """Run the node."""
    from smg_node import cli
    from smg_node.http.middleware.middleware import Middleware

    file, warm, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    assert sys.argv[4] == "--", "what follows is the node's"
    sys.argv = ["smg-node", *sys.argv[_AWAY:]]
    setattr(Middleware, "serve", counting(Middleware.serve, file, warm, count))  # noqa: B010 - the type is a method's
    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
