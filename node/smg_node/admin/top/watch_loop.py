"""Watch loop of `smg-admin top`: polls again and again, and answers keys without waiting for a
node.
"""

import time
from collections import deque
from collections.abc import Callable
from threading import Thread
from typing import Final

from smg_node.admin.client import AdminError
from smg_node.admin.top.frame import Scene, ViewOptions, draw, pressed, rows_of
from smg_node.admin.top.interval import Interval
from smg_node.admin.top.panes import PANES
from smg_node.admin.top.poller import Poller
from smg_node.admin.top.snapshot import Snapshot
from smg_node.admin.top.terminal import Terminal
from smg_node.admin.top.view import View, view_of

_PATIENCE_S: Final = 0.2
"""How long a change of the window's size, or an answer, may wait to be drawn."""
_KEPT: Final = 8
_ENOUGH: Final = 0.75
"""Of the interval: rates over less than that jump about."""


class Past:
    """The latest snapshots, and the view of them."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s: Final = interval_s
        self._kept: Final[deque[tuple[float, Snapshot]]] = deque(maxlen=_KEPT)

    def seen(self, snapshot: Snapshot, now_s: float) -> View:
        """Return the present view: since the latest snapshot that is about an interval old."""
        old = [one for at_s, one in self._kept if now_s - at_s >= _ENOUGH * self._interval_s]
        before = old[-1] if old else self._kept[0][1] if self._kept else None
        self._kept.append((now_s, snapshot))
        return view_of(Interval(before, snapshot))


class Looking:
    """One poll, in a thread of its own beside the loop: nothing waits for it at the end."""

    def __init__(self, look: Callable[[], Snapshot]) -> None:
        self._look: Final = look
        self.said: Snapshot | AdminError | None = None
        """What came of it; None while it is under way."""
        Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self.said = self._look()
        except AdminError as error:
            self.said = error


def watch(reading: Poller, terminal: Terminal, interval_s: float, wish: ViewOptions) -> None:
    """Show the cluster until the operator quits; failures are shown, and the poll tried again."""
    past, scene = Past(interval_s), Scene(None, "", interval_s)
    looking: Looking | None = None
    due_s = 0.0
    while not wish.over:
        now_s = time.monotonic()
        if looking is None and now_s >= due_s and not wish.paused:
            looking, due_s = _begun(reading, wish), now_s + interval_s
        elif looking is not None and looking.said is not None:
            scene = _scene(scene, past, looking.said, now_s)
            looking = None
        terminal.show(draw(scene, wish, *terminal.size))
        patience_s = _PATIENCE_S if looking is None else _PATIENCE_S / 8
        for key in terminal.pressed(patience_s):
            pane = wish.pane
            wish = pressed(wish, key, rows_of(scene.view, wish))
            # Another pane may need what was not asked for.
            due_s = 0.0 if wish.pane != pane else due_s


def _begun(reading: Poller, wish: ViewOptions) -> Looking:
    name = PANES[wish.pane].name
    return Looking(lambda: reading.look(workers=name == "workers", limits=name == "limits"))


def _scene(scene: Scene, past: Past, said: Snapshot | AdminError, now_s: float) -> Scene:
    if isinstance(said, AdminError):
        return Scene(scene.view, scene.time, scene.every_s, str(said))
    return Scene(past.seen(said, now_s), time.strftime("%H:%M:%S"), scene.every_s)
