"""Replay window: remembers the packet numbers of each sender, so that no packet takes effect twice.

Every sender numbers the packets of one life (boot) upwards. Per sender the last 1024 numbers are
remembered, so packets may overtake each other, and none has an effect twice. Of a sender's smaller boots
only one is remembered, the one that spoke last: their packets have no effect but an answer that says so.

At most `SENDERS_MAX` senders are remembered, and the one not heard for longest is forgotten first. A
recorded packet of a forgotten sender would be let in once more, exactly as after a restart of this node;
so every kind of packet must be harmless when repeated, and every kind is.
"""

from collections import OrderedDict
from typing import Final

WINDOW: Final = 1024
SENDERS_MAX: Final = 4096
"""About half a kilobyte each."""
_MASK: Final = (1 << WINDOW) - 1


class Window:
    """The last 1024 counters of one life of one sender."""

    __slots__ = ("boot", "highest", "seen")

    def __init__(self, boot: int) -> None:
        self.boot = boot
        self.highest = -1
        self.seen = 0
        """Bit i stands for the counter `highest - i`."""

    def is_fresh(self, counter: int) -> bool:
        """Return whether the counter was not seen, and is not too old to tell."""
        behind = self.highest - counter
        return behind < 0 or (behind < WINDOW and not self.seen >> behind & 1)

    def mark(self, counter: int) -> None:
        """Remember the counter, which is fresh."""
        ahead = counter - self.highest
        if ahead <= 0:
            self.seen |= 1 << -ahead
            return
        # A leap may be of any size: never shift by it unseen.
        self.seen = (self.seen << ahead | 1) & _MASK if ahead < WINDOW else 1
        self.highest = counter


class Replays:
    """The windows of all senders."""

    def __init__(self, senders_max: int = SENDERS_MAX) -> None:
        self._senders_max = senders_max
        self._newest: OrderedDict[bytes, Window] = OrderedDict()
        self._older: OrderedDict[bytes, Window] = OrderedDict()

    def __len__(self) -> int:
        return len(self._newest)

    def older(self) -> int:
        """Return of how many senders a smaller boot is remembered too."""
        return len(self._older)

    def is_fresh(self, sender: bytes, boot: int, counter: int) -> bool:
        """Return whether a packet with these numbers may be let in; nothing is remembered."""
        window = self._newest.get(sender)
        if window is not None and window.boot != boot:
            window = self._older.get(sender) if boot < window.boot else None
        return window is None or window.boot != boot or window.is_fresh(counter)

    def mark(self, sender: bytes, boot: int, counter: int) -> None:
        """Remember a packet that was fresh and proved to be genuine."""
        windows = self._newest
        window = windows.get(sender)
        if window is not None and boot < window.boot:
            windows = self._older
            window = windows.get(sender)
        elif window is not None and boot > window.boot:
            self._keep_older(sender, window)
        if window is None or window.boot != boot:
            window = windows[sender] = Window(boot)
        window.mark(counter)
        windows.move_to_end(sender)
        if len(windows) > self._senders_max:
            windows.popitem(last=False)

    def _keep_older(self, sender: bytes, window: Window) -> None:
        """The life before the newest: what was heard of it is not let in again."""
        self._older[sender] = window
        self._older.move_to_end(sender)
        if len(self._older) > self._senders_max:
            self._older.popitem(last=False)
