"""Cluster commands, `smg-admin cluster`: members, events, join, leave, drain, keyring."""

import json
import time
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from smg_node.admin.client import AdminClient, AdminError
from smg_node.admin.commands.keyring import keyring_app
from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.member_views import draw_members, event_row
from smg_node.admin.views.output import draw_facts, print_json, print_table, tell
from smg_node.admin.views.watch_loop import Watch, watched

cluster_app = typer.Typer(
    cls=CommandGroup,
    help="See the members of the cluster, and move them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
cluster_app.add_typer(keyring_app, name="keyring")

_EVENT_COLUMNS: Final = ("ID", "TIME", "EVENT", "MEMBER", "DETAIL")
_STATE_COLUMNS: Final[Mapping[str, str]] = {
    "name": "NAMESPACE",
    "entries": "ENTRIES",
    "bytes": "BYTES",
    "documents": "DOCUMENTS",
    "epoch": "EPOCH",
    "digest": "DIGEST",
}
# Streams carry a comment every 15 s unless the node was told otherwise.
_QUIET_S: Final = 60.0
_RECONNECT_S: Final = 1.0

Member = Annotated[
    str, typer.Argument(metavar="NODE", help="The member's name.", show_default=False)
]


_DRAIN_EPILOG: Final = (
    "Exit code with --wait: 0 when nothing is open or it has left, 1 when time is up, it died, or somebody undrained it."
    " Any node can be asked; ask another one than the member if it is to be stopped meanwhile."
)


# ── Seeing ───────────────────────────────────────────────────────────────────


@cluster_app.command("status")
def status(context: typer.Context, watch: Watch = False) -> None:
    """Say how this node stands in its cluster, and show the members.

    Exit code 1 when it looks for others and found none, or believes to be cut off.
    """
    options = options_of(context)

    def draw(card: Mapping[str, Any]) -> str:
        rows = _members(options.client)
        if options.as_json:
            return _json({"cluster": card, "members": rows}, one_line=watch)
        return f"{draw_facts(_facts(card))}\n\n{draw_members(rows)}"

    def look() -> dict[str, Any]:
        card: dict[str, Any] = options.client.ask("GET", "v1", "cluster")
        return card

    if watch:
        watched(lambda: draw(look()))
        return
    card = look()
    print(draw(card))
    raise typer.Exit(0 if _is_well(card) else 1)


@cluster_app.command("members")
def members(
    context: typer.Context,
    state: Annotated[
        str, typer.Option(metavar="STATE", help="Only those alive, suspect, dead or left.")
    ] = "",
    watch: Watch = False,
) -> None:
    """List the members with their states and for how long, sorted by name."""
    options = options_of(context)

    def draw() -> str:
        rows = _members(options.client, state)
        return _json(rows, one_line=watch) if options.as_json else draw_members(rows)

    if watch:
        watched(draw)
    else:
        print(draw())


@cluster_app.command("state")
def state(
    context: typer.Context,
    namespace: Annotated[
        str, typer.Argument(metavar="[NAMESPACE]", help="Only this one.", show_default=False)
    ] = "",
    alone: Annotated[
        bool, typer.Option("--alone", help="Do not ask the other members for theirs.")
    ] = False,
) -> None:
    """Show what replicated state this node holds, and whether the others hold the same.

    Equal digests are equal contents. Exit code 1 when some member differs or does not answer: a moment after
    a change that is as it should be.
    """
    options = options_of(context)
    query = None if alone else {"peers": "true"}
    path = ("v1", "cluster", "state", *([namespace] if namespace else []))
    view = options.client.ask("GET", *path, query=query)
    members: Mapping[str, Mapping[str, Any]] = view["members"]
    if options.as_json:
        print_json(view)
    else:
        rows = view["namespaces"] if not namespace else [view["namespace"]]
        print_table(
            tuple(_STATE_COLUMNS.values()), map(_state_row, rows), empty="There is no state."
        )
        if not view["held"]:
            tell("this node is still joining: what the cluster has is not here yet")
        for name, member in sorted(members.items()):
            print(f"{name} {_same(member)}")
    raise typer.Exit(0 if all(member["same"] for member in members.values()) else 1)


def _state_row(row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row[name] for name in _STATE_COLUMNS)


def _same(member: Mapping[str, Any]) -> str:
    if member["error"]:
        return f"cannot be compared: {member['error']}"
    if member["same"]:
        return "holds the same"
    return f"differs: {', '.join(member.get('differs', ())) or 'another digest'}"


@cluster_app.command("events")
def events(
    context: typer.Context,
    after: Annotated[int, typer.Option(min=0, metavar="ID", help="Only later ones.")] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as they happen, until Ctrl-C.")
    ] = False,
) -> None:
    """Tell what happened to the members, as this node saw it; it keeps the last 4,096 events."""
    options = options_of(context)
    if follow:
        try:
            _follow(options.client, after, as_json=options.as_json)
        except KeyboardInterrupt:
            return
    query = {"after": str(after)}
    rows = options.client.ask("GET", "v1", "cluster", "events", query=query)["events"]
    if options.as_json:
        print_json(rows)
        return
    print_table(_EVENT_COLUMNS, map(event_row, rows), empty="Nothing has happened.")


def _follow(client: AdminClient, after: int, *, as_json: bool) -> None:
    """Print events as they come, and come back to a node that was away."""
    while True:
        try:
            query = {"after": str(after), "stream": "true"}
            for event in client.follow("v1", "cluster", "events", query=query, quiet_s=_QUIET_S):
                after = int(event["id"])
                line = json.dumps(event) if as_json else "  ".join(map(str, event_row(event)))
                print(line, flush=True)
        except AdminError as error:
            tell(f"{error}; trying again")
            time.sleep(_RECONNECT_S)


# ── Changing ─────────────────────────────────────────────────────────────────


@cluster_app.command("join")
def join(
    context: typer.Context,
    peers: Annotated[list[str], typer.Argument(metavar="HOST[:PORT]…", help="Nodes to look for.")],
) -> None:
    """Let this node look for others, for ever; a partition heals through whoever it finds."""
    options = options_of(context)
    answer = options.client.ask("POST", "v1", "cluster", "join", body={"peers": peers})
    if options.as_json:
        print_json(answer)
    else:
        print(f"looking for {', '.join(peers)}; `smg-admin cluster status` says who was found")


@cluster_app.command("leave")
def leave(context: typer.Context) -> None:
    """Let this node finish its work, say goodbye to the others, and stop."""
    options = options_of(context)
    answer = options.client.ask("POST", "v1", "cluster", "leave")
    if options.as_json:
        print_json(answer)
    else:
        print(f"{answer['node']} takes its leave: it drains, says goodbye and stops")


@cluster_app.command("drain", epilog=_DRAIN_EPILOG)
def drain(
    context: typer.Context,
    node: Member,
    wait: Annotated[
        bool, typer.Option("--wait", help="Return only when nothing is open there any more.")
    ] = False,
    wait_s: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=172_800,
            metavar="SECONDS",
            help="With --wait: at most this long, instead of what the member would take to stop.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Let a member take no new work; it goes on running until it is undrained or stopped.

    Its readiness falls at once, and for drain.settle_s it still takes what comes, while balancers notice. After
    that new work is refused with 503 and a hint to come again; what is open goes on to its end. No stream can
    move to another node: one that is open drain.grace_s after the member was told to stop is cut off, and told so.
    """
    from smg_node.admin.commands.drain_wait import drain as drained

    raise typer.Exit(
        drained(options_of(context), node, wait=wait or wait_s is not None, wait_s=wait_s)
    )


@cluster_app.command("undrain")
def undrain(context: typer.Context, node: Member) -> None:
    """Let a drained member take work again."""
    options = options_of(context)
    row = options.client.ask("POST", "v1", "cluster", "members", node, "undrain")
    if options.as_json:
        print_json(row)
    else:
        print(f"{node} takes work again")


@cluster_app.command("forget")
def forget(context: typer.Context, node: Member) -> None:
    """Drop a dead member's row on every node, instead of a day after its death.

    Exit code 1 when some member did not.
    """
    options = options_of(context)
    answer = options.client.ask("POST", "v1", "cluster", "members", node, "forget")
    failed = {name: said for name, said in answer["members"].items() if said != "ok"}
    if options.as_json:
        print_json(answer)
    elif not failed:
        print(f"{node} is forgotten by {len(answer['members'])} members")
    for name, said in failed.items():
        tell(f"{name} did not forget it: {said}")
    raise typer.Exit(1 if failed else 0)


# ── Pictures ─────────────────────────────────────────────────────────────────


def _members(client: AdminClient, state: str = "") -> list[dict[str, Any]]:
    query = {"state": state} if state else None
    rows: list[dict[str, Any]] = client.ask("GET", "v1", "cluster", "members", query=query)[
        "members"
    ]
    return sorted(rows, key=lambda row: str(row["name"]))


def _is_well(card: Mapping[str, Any]) -> bool:
    return not card["isolated"] and bool(card["joined"] or not card["seeds"])


def _facts(card: Mapping[str, Any]) -> list[tuple[str, object]]:
    if card["security"] == "alone":
        return [
            ("node", f"{card['node']}, alone: no mesh is open"),
            ("to do", "start it with --mesh-key FILE; `cluster keyring generate` makes a key"),
        ]
    secure = "encrypted" if card["security"] == "encrypted" else "INSECURE: plain text, no keyring"
    counts = ", ".join(f"{count} {state}" for state, count in card["members"].items() if count)
    seeds = [
        f"{seed['peer']} ({seed['error']})" if seed.get("error") else seed["peer"]
        for seed in card["seeds"]
    ]
    keys = [*(f"{key} (encrypts)" for key in card["keys"][:1]), *card["keys"][1:]]
    return [
        ("cluster", f"{card['label']}, {secure}"),
        ("node", f"{card['node']} at {card['address']}"),
        ("state", _standing(card)),
        *(("", reason) for reason in card["degraded"]),
        ("members", counts),
        *([("settings", _settings(card["config"]))] if "config" in card else []),
        ("seeds", seeds),
        *([("keys", keys)] if keys else []),
    ]


def _settings(config: Mapping[str, Any]) -> str:
    """Whether all members run the same settings, and which."""
    if config["same"]:
        return f"{config['hash']}, the same on all members that say so"
    others = sorted(
        name for name, state in config["members"].items() if state["hash"] != config["hash"]
    )
    return f"{config['hash']}; others on {', '.join(others)}"


def _standing(card: Mapping[str, Any]) -> str:
    if card["leaving"]:
        return "leaving"
    found = "joined" if card["joined"] else "has not met anybody yet"
    standing = "isolated: it hears nobody and accuses nobody" if card["isolated"] else found
    return f"{standing}, drained" if card["drained"] else standing


def _json(value: object, *, one_line: bool) -> str:
    return json.dumps(value, indent=None if one_line else 2, ensure_ascii=False)
