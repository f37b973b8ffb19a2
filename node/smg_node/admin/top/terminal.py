"""Terminal control: single keys, full-screen drawing, and the restored state at the end."""

import os
import select
import shutil
import signal
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

from smg_node.admin.top.key_input import Keys
from smg_node.admin.top.terminal_lines import Line, plain, styled

_OTHER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"
_OWN_SCREEN: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"
_KEYS_MAX_BYTES: Final = 1_024
_LOCAL_FLAGS: Final = 3
"""Where `tcgetattr` has what a terminal does to keys by itself."""


def is_terminal() -> bool:
    """Whether input and output are terminals, and the output can be drawn on."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Terminal:
    """The screen and the keys; `opened` makes one."""

    def __init__(self, keys: int) -> None:
        self._fd: Final = keys
        self._keys: Final = Keys()
        self._shown = ""
        self._coloured: Final = not os.environ.get("NO_COLOR")

    @property
    def size(self) -> tuple[int, int]:
        """Present number of columns and lines."""
        width, height = shutil.get_terminal_size()
        return width, height

    def show(self, lines: Sequence[Line]) -> None:
        """Put these lines on the screen, from its top on; nothing is written where nothing has changed."""
        drawn = [styled(line) if self._coloured else plain(line) for line in lines]
        text = f"{_REST_OF_LINE}\r\n".join(drawn)
        if text == self._shown:
            return
        self._shown = text
        sys.stdout.write(f"{_HOME}{text}{_REST_OF_LINE}{_REST_OF_SCREEN}")
        sys.stdout.flush()

    def pressed(self, within_s: float) -> list[str]:
        """Return the keys that are pressed, as soon as there are any, or none after that time.

        A terminal that is gone reads as `ctrl-d`.
        """
        readable, _, _ = select.select([self._fd], [], [], within_s)
        if not readable:
            return []
        try:
            sent = os.read(self._fd, _KEYS_MAX_BYTES)
        except OSError:
            sent = b""
        return self._keys.feed(sent) if sent else ["ctrl-d"]


@contextmanager
def opened() -> Iterator[Terminal]:
    """Take the terminal, and give it back as it was, whatever happens: SIGTERM and SIGHUP end it in good order."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    mode = termios.tcgetattr(fd)
    # Keys come one by one and are not echoed; Ctrl-C and Ctrl-Z are keys, because a screen must be given back.
    mode[_LOCAL_FLAGS] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
    numbers = (signal.SIGTERM, signal.SIGHUP)
    handled = {number: signal.signal(number, _leave) for number in numbers}
    try:
        termios.tcsetattr(fd, termios.TCSADRAIN, mode)
        sys.stdout.write(_OTHER_SCREEN)
        yield Terminal(fd)
    finally:
        sys.stdout.write(_OWN_SCREEN)
        sys.stdout.flush()
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
        for number, former in handled.items():
            signal.signal(number, former)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
