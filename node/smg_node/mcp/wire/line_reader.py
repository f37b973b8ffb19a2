"""Line reader of a child process's output: messages, and what is none. Pure.

Servers print to their output what was meant for a log. Such lines are counted and handed on as noise; after
`NOISE_MAX` of them without a message in between, what speaks is no MCP server.
"""

from dataclasses import dataclass, field
from typing import Final

from smg_node.mcp.wire.messages import Message, WireError, read_messages

NOISE_MAX: Final = 100


@dataclass(slots=True)
class LinesRead:
    """What a piece of output brought: messages, lines that are none, and whether the output is of use no more."""

    messages: list[Message] = field(default_factory=list)
    noise: list[bytes] = field(default_factory=list)
    dead: str = ""
    """Why nothing more of it is read; "" while it is."""


class LineReader:
    """Reader of one process's output; no line may have more bytes than `line_bytes_max`."""

    def __init__(self, line_bytes_max: int) -> None:
        self._max = line_bytes_max
        self._held: list[bytes] = []
        self._size = 0
        self._noise = 0
        self._dead = ""

    def feed(self, piece: bytes) -> LinesRead:
        """Return what is whole now. Nothing is read any more once `dead` was said."""
        read = LinesRead()
        if not self._dead:
            *lines, rest = piece.split(b"\n")
            for line in lines:
                whole = b"".join((*self._held, line)) if self._held else line
                self._held, self._size = [], 0
                self._take(whole, read)
            if rest:
                self._held.append(rest)
                self._size += len(rest)
            if self._size > self._max:
                self._dead = f"a line of more than {self._max} bytes (mcp.answer_bytes_max)"
                self._held = []
        read.dead = self._dead
        return read

    def _take(self, line: bytes, read: LinesRead) -> None:
        if self._dead or not line.strip():
            return
        if len(line) > self._max:
            self._dead = f"a line of more than {self._max} bytes (mcp.answer_bytes_max)"
            return
        try:
            read.messages += read_messages(line)
        except WireError:
            read.noise.append(line)
            self._noise += 1
            if self._noise >= NOISE_MAX:
                self._dead = f"{NOISE_MAX} lines that are no messages"
        else:
            self._noise = 0
