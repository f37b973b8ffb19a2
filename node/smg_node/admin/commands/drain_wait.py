"""Drain with wait, `smg-admin cluster drain`: drains a member and shows what is still open there.

    looks, twice a second ──▶ what the member says ──▶ a line of progress, or the outcome

Any node may be asked about any other. A look that fails is tried again: the member may be busy, or the node that is asked
may be restarted. What ends the waiting is in `outcome_of`.
"""

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from smg_node.admin.client import AdminClient, AdminError
from smg_node.admin.options import Options
from smg_node.admin.views.output import format_span, print_json, tell

LOOK_S: Final = 0.5
SAY_S: Final = 5.0
"""Into a pipe, progress is said this often, and whenever the stage changes."""
BLIND_S: Final = 15.0
"""So long nobody need answer before that is the outcome: a node restarts in less."""
_ALREADY_LEAVING: Final = "member_leaving"

Outcome: TypeAlias = Literal[
    "drained", "left", "died", "restarted", "undrained", "time is up", "silent"
]
WELL: Final[tuple[Outcome, ...]] = ("drained", "left")

View: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Waited:
    """Result of waiting: the member's last status, and the failure of the last look."""

    outcome: Outcome
    waited_s: float
    view: View
    trouble: str = ""


def drain(options: Options, node: str, *, wait: bool, wait_s: float | None) -> int:
    """Let a member take no new work, and wait until nothing is open there if that is wanted; return the exit code."""
    row = _begun(options.client, node, wait=wait)
    if not wait:
        if options.as_json:
            print_json(row)
        else:
            print(f"{node} takes no new work")
        return 0
    progress = _Progress(node)
    show = _nothing if options.as_json else progress.show
    try:
        waited = waited_for(options.client, node, wait_s, show=show)
    finally:
        progress.end()
    if options.as_json:
        print_json(
            {
                "name": node,
                "outcome": waited.outcome,
                "waited_s": round(waited.waited_s, 1),
                "trouble": waited.trouble,
                "last": waited.view,
            }
        )
    elif waited.outcome in WELL:
        print(outcome_text(node, waited))
    else:
        tell(f"smg-admin: {outcome_text(node, waited)}")
    return 0 if waited.outcome in WELL else 1


def _begun(client: AdminClient, node: str, *, wait: bool) -> View:
    """Set the member aside; one that is leaving already may be waited for as well."""
    answer = client.look("POST", "v1", "cluster", "members", node, "drain")
    error = answer.body.get("error") if isinstance(answer.body, dict) else None
    if wait and isinstance(error, dict) and error.get("code") == _ALREADY_LEAVING:
        return {}
    row: View = client.taken(answer)
    return row


def waited_for(
    client: AdminClient,
    node: str,
    wait_s: float | None,
    *,
    show: Callable[[View, str, float], None],
) -> Waited:
    """Look until there is an outcome. `wait_s` None: as long as the member itself would take if it were stopped.

    `show` is given the last view, what went wrong with the last look or "", and the seconds that are left.
    """
    began_s = heard_s = time.monotonic()
    first: View = {}
    last: View = {}
    while True:
        now_s = time.monotonic()
        trouble = ""
        try:
            last = client.ask("GET", "v1", "cluster", "members", node, "drain")
            first, heard_s = first or last, now_s
        except AdminError as error:
            if not last:
                raise
            trouble = str(error)
        patience_s = float(first.get("patience_s", 0.0)) if wait_s is None else wait_s
        left_s = patience_s - (now_s - began_s)
        blind = now_s - heard_s > BLIND_S
        outcome = outcome_of(first, last, trouble=trouble, blind=blind, late=left_s <= 0)
        if outcome is not None:
            return Waited(outcome, now_s - began_s, last, trouble)
        show(last, trouble, left_s)
        time.sleep(min(LOOK_S, max(left_s, 0.01)))


def outcome_of(first: View, last: View, *, trouble: str, blind: bool, late: bool) -> Outcome | None:
    """Return the outcome, or None while there is something to wait for.

    `trouble`: the last look failed, `blind`: so did all for a while, `late`: the time is up.
    """
    if trouble:
        return "silent" if blind else "time is up" if late else None
    match last["stage"]:
        case "drained":
            return "drained"
        case "left":
            return "left"
        case "dead":
            return "died"
        case "serving":
            return "undrained" if last["boot"] == first["boot"] else "restarted"
        case _:
            return "time is up" if late else None


def outcome_text(node: str, waited: Waited) -> str:
    """Return the outcome in words: what it is, and what may be done now."""
    view, after = waited.view, f"after {format_span(waited.waited_s)}"
    match waited.outcome:
        case "drained":
            return f"{node} is empty {after}: nothing is open there{_handed_over(view)}"
        case "left":
            return f"{node} has left the cluster {after}"
        case "died":
            return f"{node} died while it was drained: what was open there was cut off"
        case "restarted":
            return f"{node} was started anew while it was drained, and takes work: what was open there was cut off"
        case "undrained":
            return f"{node} takes work again: somebody undrained it"
        case "silent":
            return f"what became of {node} is not known: {waited.trouble}"
        case _:
            left = "takes no new work" if view["stage"] != "leaving" else "is leaving"
            trouble = f" when it was last heard ({waited.trouble})" if waited.trouble else ""
            return (
                f"time is up {after}: {opened(view)} at {node}{trouble}. It {left}: wait again, stop it (what is open then"
                f" has drain.grace_s to end), or `smg-admin cluster undrain {node}`"
            )


def _handed_over(view: View) -> str:
    """Return in words what goes over to other nodes when it is stopped."""
    duties = view["duties"]
    kept = [
        *([_some(duties["limits"], "limit")] if duties["limits"] else []),
        *([_some(duties["workers"], "worker")] if duties["workers"] else []),
    ]
    others = f"; what it looks after ({', '.join(kept)}) goes over to others when it stops"
    spooled = (
        "; turns wait on its disk for the store, and are written when it is back"
        if duties["spooled"]
        else ""
    )
    return f"{others if kept else ''}{spooled}"


def opened(view: View) -> str:
    """Return in words what is open at a member."""
    parts = [
        _some(view["streams"], "stream"),
        _some(view["requests"], "request"),
        *([_some(view["background"], "background response")] if view["background"] else []),
    ]
    silent = view["silent_processes"]
    unsaid = f" (process {', '.join(silent)} does not say)" if silent else ""
    return f"{', '.join(parts)} open{unsaid}"


def step(node: str, view: View, trouble: str, left_s: float) -> str:
    """Return one line of what is waited for."""
    if trouble:
        return f"{node}: no word of it ({trouble}); {opened(view)} before"
    steps = [opened(view)]
    if view["settle_left_s"]:
        steps.append(
            f"still takes work for {format_span(view['settle_left_s'] + 1)}, for balancers"
        )
    if view["cut_left_s"] is not None:
        steps.append(f"what is left is cut in {format_span(view['cut_left_s'])}")
    believing = [
        f"{one['address']}{' ' + one['agent'] if one['agent'] else ''}"
        for one in view["probers"]
        if one["told_ready"]
    ]
    if believing:
        steps.append(f"not asked since by {', '.join(believing)}, who was told that it is ready")
    return f"{node} is {view['stage']}: {', '.join(steps)}; {format_span(left_s)} left"


class _Progress:
    """One line that changes on a terminal; into a pipe a line now and then."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._said_s = 0.0
        self._stage = ""
        self._drawn = False

    def show(self, view: View, trouble: str, left_s: float) -> None:
        line = _printable(step(self._node, view, trouble, left_s))
        if sys.stderr.isatty():
            self._drawn = True
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{line[:width]}", end="", file=sys.stderr, flush=True)
            return
        # Said anew where it is something else that is waited for.
        stage = f"{view['stage']}{bool(trouble)}"
        now_s = time.monotonic()
        if stage != self._stage or now_s - self._said_s >= SAY_S:
            self._stage, self._said_s = stage, now_s
            tell(line)

    def end(self) -> None:
        """Leave the line, whatever is said next."""
        if self._drawn:
            print(file=sys.stderr, flush=True)


def _printable(text: str) -> str:
    """Return a prober's name without characters that steer the terminal."""
    return "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in text)


def _nothing(view: View, trouble: str, left_s: float) -> None:
    """Show nothing."""


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
