"""Template line: what supervisor and template process say to each other, and the supervisor's end of it.

supervisor ──▶ birth (number, living, after) with the new process's line    fork it
template   ──▶ READY                                                        everything that was noted has been read
           ──▶ the new process's id                                         it lives, and is the supervisor's child

One message at a time, and each side knows which comes next: a template answers a birth or is dead. The end of the line ends
the template.
"""

import os
import signal
import socket
from collections.abc import Collection
from typing import Final

import msgspec

READY: Final = b"ready"
BIRTH_MAX_BYTES: Final = 1 << 16
_ANSWER_S: Final = 5.0
"""A fork of a process with a gigabyte takes 10 ms."""


class Birth(msgspec.Struct, frozen=True, array_like=True):
    """A process to be forked; its fields are those of `Role`."""

    number: int
    living: tuple[str, ...]
    after: str


_WRITER: Final = msgspec.msgpack.Encoder()
_READER: Final = msgspec.msgpack.Decoder(Birth)


def read_birth(content: bytes) -> Birth:
    """Return what `Template.fork` wrote; msgspec.MsgspecError for anything else."""
    return _READER.decode(content)


def template_pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a line that keeps messages apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Template:
    """A template process as its supervisor knows it. `keys` are the vocabularies that it was to read."""

    def __init__(self, pid: int, line: socket.socket, keys: Collection[str]) -> None:
        self.pid: Final = pid
        self.line: Final = line
        self.keys: Final = frozenset(keys)
        self.ready = False
        self.reaped = False
        """Whether it has ended, and its id may be another process's by now."""
        line.setblocking(False)

    def hear(self) -> None:
        """Note that it is ready, if it has said so by now."""
        try:
            self.ready = self.ready or self.line.recv(16) == READY
        except OSError:
            # It still reads; or it is dead, and will be reaped.
            return

    def fork(self, birth: Birth, line: socket.socket) -> int | None:
        """Return the id of a process forked from it, whose line that is; None where the template does not answer."""
        self.line.settimeout(_ANSWER_S)
        try:
            socket.send_fds(self.line, [_WRITER.encode(birth)], [line.fileno()])
            said = self.line.recv(16)
        except OSError:
            return None
        return int(said) if said.isdigit() else None

    def end(self) -> None:
        """Let it end, and reap it."""
        self.line.close()
        if not self.reaped:
            # It has no work that could be lost; the end of its line it might notice seconds later, when it has read.
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.reaped = True
