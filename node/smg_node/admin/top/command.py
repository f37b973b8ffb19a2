"""Top command, `smg-admin top`: its arguments, and the form of output: screen, text or JSON."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from enum import Enum
from typing import Annotated, Any, Final

import typer

from smg_node.admin.options import Options, options_of

_PIPE_COLUMNS: Final = 160
"""So wide is a table that no terminal cuts."""


class PaneName(Enum):
    """One of the panes."""

    NODES = "nodes"
    WORKERS = "workers"
    TENANTS = "tenants"
    LIMITS = "limits"


Interval = Annotated[
    float,
    typer.Option(
        "--interval", "-i", min=0.2, max=3600, metavar="SECONDS", help="How often to look again."
    ),
]
Once = Annotated[
    bool,
    typer.Option("--once", help="Look over one interval, print every pane (or --pane), and end."),
]
Start = Annotated[
    PaneName | None,
    typer.Option("--pane", show_default=False, help="The pane to begin with; else nodes."),
]


def top(
    context: typer.Context, interval_s: Interval = 1.0, once: Once = False, pane: Start = None
) -> None:
    """Watch the whole cluster at work: nodes, models and workers, tenants, limits.

    Any node can be asked, and tells of all. Should it die, one that it named is asked instead; --url may be given
    several times. Rates are over the last interval, by each node's own clock; TTFT50 and TTFT95 are the times to
    the first token that half, and 19 of 20, of the answers of that interval kept to.

    \b
    Keys: 1 2 3 4 panes   s sort   r turn the order round   p pause   ? all keys   q quit

    Without a terminal every look is printed below the one before; with --json each is one line:

    \b
    smg-admin top
    smg-admin --url http://a:30000 --url http://b:30000 top --pane tenants
    smg-admin top --once --pane limits
    smg-admin top --json --interval 10 >> cluster.jsonl
    smg-admin top --json --once | jq '.nodes[] | {name, state, open}'
    """
    # What reads and draws is loaded here: help and completion do without it.
    from smg_node.admin.top.frame import ViewOptions
    from smg_node.admin.top.panes import PANES
    from smg_node.admin.top.poller import Poller
    from smg_node.admin.top.terminal import is_terminal, opened
    from smg_node.admin.top.watch_loop import watch

    options = options_of(context)
    reading = Poller(options.client, options.urls)
    try:
        if once or options.as_json or not is_terminal():
            for said in _told(reading, options, interval_s, pane):
                print(said, flush=True)
                if once:
                    return
        names = [one.name for one in PANES]
        wish = ViewOptions(pane=0 if pane is None else names.index(pane.value))
        # A cluster that cannot be asked at all is reported where it can be read afterwards.
        reading.look(workers=False, limits=False)
        with opened() as terminal:
            watch(reading, terminal, interval_s, wish)
    except KeyboardInterrupt:
        return


def _told(
    reading: Any, options: Options, interval_s: float, pane: PaneName | None
) -> Iterator[str]:
    """Yield each look as it is printed, for ever; AdminError if no node can be asked."""
    from smg_node.admin.top.frame import Scene, draw_all
    from smg_node.admin.top.panes import PANES
    from smg_node.admin.top.terminal_lines import plain
    from smg_node.admin.top.watch_loop import Past

    shown = [one for one in PANES if pane is None or one.name == pane.value]
    names = {one.name for one in PANES} if options.as_json else {one.name for one in shown}
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_COLUMNS
    past = Past(interval_s)
    past.seen(reading.look(workers=False, limits=False), time.monotonic())
    while True:
        time.sleep(interval_s)
        snapshot = reading.look(workers="workers" in names, limits="limits" in names)
        view = past.seen(snapshot, time.monotonic())
        now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        if options.as_json:
            yield json.dumps({"time": now, "interval_s": interval_s, **asdict(view)})
        else:
            scene = Scene(view, now, interval_s)
            yield "\n".join([*map(plain, draw_all(scene, shown, width)), ""])
