"""Process role of a forked process, and the one-byte orders between it and the supervisor.

supervisor ──▶ LEAVE      as good as a signal; the second one hurries
           ──▶ (end)      the supervisor is gone
           ──▶ YIELD      another one has its place, and is up: leave, without a word to balancers
           ──▶ ALONE      no template will have what was asked for
process    ──▶ UP         the start has succeeded: it is replaced if it ends without LEAVING
           ──▶ LEAVING    it ends for good, and everything with it
           ──▶ SHARE      it needs a vocabulary that it noted, and may be replaced for one that has it
"""

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from smg_node.config.address import Address

if TYPE_CHECKING:
    # Comes with the first model.
    from smg_node.tokens.loaded_tokenizer import LoadedTokenizer

LEAVE: Final = b"T"
UP: Final = b"U"
LEAVING: Final = b"L"
SHARE: Final = b"S"
YIELD: Final = b"Y"
ALONE: Final = b"N"

Kind = Literal["control", "data", "template"]


class Orders:
    """The process's end of that line; used in the loop's thread only."""

    def __init__(self, line: socket.socket) -> None:
        self._line: Final = line
        self.orphaned = False
        """Whether the supervisor is gone."""
        self._others: Final[dict[bytes, Callable[[], None]]] = {}

    @property
    def line(self) -> socket.socket:
        """This process's end."""
        return self._line

    def on(self, word: bytes, heard: Callable[[], None]) -> None:
        """Call `heard` for each such word, once `listen` was called."""
        self._others[word] = heard

    def listen(self, leave: Callable[[], None]) -> None:
        """Call `leave` for each order to leave, and when the supervisor is gone."""
        self._line.setblocking(False)
        asyncio.get_running_loop().add_reader(self._line, self._hear, leave)

    def say(self, word: bytes) -> None:
        """Send one byte; nothing happens where the supervisor is gone."""
        try:
            self._line.send(word)
        except OSError:
            # The supervisor is gone, which is noticed elsewhere.
            return

    def _hear(self, leave: Callable[[], None]) -> None:
        try:
            heard = self._line.recv(64)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if not heard:
            self.orphaned = True
            asyncio.get_running_loop().remove_reader(self._line)
            leave()
        for _ in range(heard.count(LEAVE)):
            leave()
        for word, called in self._others.items():
            if word in heard:
                called()


@dataclass(frozen=True, slots=True)
class Place:
    """Endpoints of a node's processes: sockets in a folder of their own, and the address clients
    know.
    """

    folder: Path
    address: Address

    @property
    def bus(self) -> str:
        """The socket of the bus."""
        return str(self.folder / "bus")

    @property
    def control(self) -> str:
        """The socket on which the control process answers what is passed on to it."""
        return str(self.folder / "http")


@dataclass(frozen=True, slots=True)
class Role:
    """Role of this process. `living` are the data processes that it finds; `after` is how its
    predecessor ended; `read` are the vocabularies that its template has read, by their `proof_key`; `keys`, of a
    template, those it is to read.
    """

    kind: Kind
    name: str
    orders: Orders
    place: Place
    living: tuple[str, ...] = ()
    after: str = ""
    read: "dict[str, LoadedTokenizer]" = field(default_factory=dict)
    keys: frozenset[str] = frozenset()


def is_alive(name: str) -> bool:
    """Whether a data process of that name lives; its supervisor notices its end at once."""
    pid = int(name.rpartition("-")[2])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # A process of another user has that number now.
        return False
    return True
