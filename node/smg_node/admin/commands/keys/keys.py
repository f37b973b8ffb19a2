"""Key commands, `smg-admin keys`: API keys of the whole cluster, made, imported, listed and revoked."""

import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from smg_node.admin.client import AdminError
from smg_node.admin.commands.keys.key_import import import_keys
from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.output import print_json, print_table, tell
from smg_node.admin.views.value_text import format_time

keys_app = typer.Typer(
    cls=CommandGroup,
    help="Make, import, list and revoke the API keys of the cluster.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
keys_app.command("import")(import_keys)

_KEYS: Final = ("v1", "cluster", "keys")
_UNITS_S: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SPAN: Final = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
_COLUMNS: Final = ("ID", "TENANT", "ROLE", "NAME", "STATE", "CREATED", "EXPIRES", "FINGERPRINT")
_LISTS: Final = ("models", "networks", "routes")
_Models: TypeAlias = Annotated[
    str, typer.Option(metavar="A,B", help="Only these models; `*` stands for any characters.")
]
_Networks: TypeAlias = Annotated[
    str, typer.Option(metavar="CIDR,…", help="Only from these networks, such as 10.0.0.0/8.")
]
_Routes: TypeAlias = Annotated[
    str, typer.Option(metavar="API,…", help="Only for these APIs: chat, responses, messages, …")
]
_MaxPriority: TypeAlias = Annotated[
    str,
    typer.Option(metavar="CLASS", help="At most so urgent: system, interactive, default, bulk."),
]


@keys_app.command("create")
def create(
    context: typer.Context,
    tenant: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Whose key it is; one of role user or tenant_admin needs it."
        ),
    ] = "",
    role: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="user: the data API; tenant_admin: besides, keys and limits of its tenant; operator: may look at"
            " everything; admin: may change it; or a role of auth.roles.",
        ),
    ] = "user",
    name: Annotated[
        str, typer.Option(metavar="TEXT", help="What it is for, for whoever lists the keys.")
    ] = "",
    expires: Annotated[
        str,
        typer.Option(
            metavar="WHEN", help="After 90d, 12h, 30m or 60s, or on 2027-01-31 (UTC); else never."
        ),
    ] = "",
    models: _Models = "",
    networks: _Networks = "",
    routes: _Routes = "",
    max_priority: _MaxPriority = "",
) -> None:
    """Make a key, and print it: it is shown this once and can never be read again.

    The first admin key closes the cluster: from then on data and admin routes need a key.

    \b
    smg-admin keys create --tenant acme --name checkout --expires 90d
    smg-admin keys create --role admin > admin.key
    smg-admin keys create --tenant acme --models 'llama-*' --networks 10.0.0.0/8 --routes chat
    """
    options = options_of(context)
    body: dict[str, Any] = {"role": role, "name": name}
    if tenant:
        body["tenant"] = tenant
    if expires:
        body["expires_in_s"] = _seconds(expires)
    only = {"models": models, "networks": networks, "routes": routes}
    body |= {field: _words(said) for field, said in only.items() if said}
    if max_priority:
        body["max_priority"] = max_priority
    made = options.client.ask("POST", *_KEYS, body=body)
    if options.as_json:
        print_json(made)
        return
    _tell_made(made)
    if not expires and made["expires_ms"] is not None:
        tell(f"it ends with the key that made it, {format_time(made['expires_ms'])}")


@keys_app.command("list")
def list_keys(
    context: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that were revoked in the last 30 days.")
    ] = False,
) -> None:
    """List the keys: whose they are, what they may, until when; never a key itself."""
    options = options_of(context)
    query = {"all": "true"} if everything else None
    answer = options.client.ask("GET", *_KEYS, query=query)
    if options.as_json:
        print_json(answer)
        return
    keys = answer["keys"]
    if any(map(_only, keys)):
        rows = [(*_row(key), _only(key)) for key in keys]
        print_table((*_COLUMNS, "ONLY"), rows, empty="")
    else:
        print_table(_COLUMNS, map(_row, keys), empty="There are no keys.")
    if not answer["closed"]:
        tell(
            "no admin key exists: data is open unless auth.data says otherwise, the admin API answers"
            " loopback only"
        )


@keys_app.command("show")
def show(
    context: typer.Context,
    key_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="As `keys list` shows it.", show_default=False),
    ],
) -> None:
    """Show one key: whose it is, what it may, what it is restricted to; never the key itself."""
    options = options_of(context)
    wanted = _id_of(key_id)
    rows = options.client.ask("GET", *_KEYS, query={"all": "true"})["keys"]
    found = next((row for row in rows if row["id"] == wanted), None)
    if found is None:
        raise AdminError(f"no key has the id {wanted[:64]!r}")
    if options.as_json:
        print_json(found)
        return
    shown = dict(zip(_COLUMNS, _row(found), strict=True))
    only = {name.upper(): ", ".join(found.get(name, ())) for name in _LISTS}
    priority = {"MAX PRIORITY": found.get("max_priority", "")}
    rows = [(name, value) for name, value in {**shown, **only, **priority}.items() if value]
    print_table(("KEY", "VALUE"), rows, empty="")


@keys_app.command("revoke")
def revoke(
    context: typer.Context,
    key_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="As `keys list` shows it.", show_default=False),
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Also the last admin key: the cluster is open again.")
    ] = False,
) -> None:
    """Make a key worthless on every node, at once."""
    options = options_of(context)
    query = {"force": "true"} if force else None
    done = options.client.ask("DELETE", *_KEYS, _id_of(key_id), query=query)
    if options.as_json:
        print_json(done)
        return
    print(f"key {done['id']} of {done['tenant'] or 'nobody'} ({done['role']}) is revoked")
    if done["opens"]:
        tell("no admin key is left: the cluster is open again")


@keys_app.command("generate")
def generate(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="A new file, readable by its owner only."),
    ] = None,
) -> None:
    """Make an admin key for a file; needs no node. Nodes are started with it: --auth.admin-key-file FILE."""
    from smg_node.access.api_key import (
        ID_ALPHABET,
        ID_CHARACTERS,
        SECRET_ALPHABET,
        SECRET_CHARACTERS,
        key_text,
    )
    from smg_node.system_clock import secret_text

    key = key_text(
        secret_text(ID_CHARACTERS, ID_ALPHABET), secret_text(SECRET_CHARACTERS, SECRET_ALPHABET)
    )
    if out is None:
        print(key)
        return
    try:
        with open(os.open(out, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(f"{key}\n")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise AdminError(f"cannot write {out}: {reason}") from None
    tell(f"{out} holds a new admin key: smg-node --auth.admin-key-file {out}")


def _tell_made(made: Mapping[str, Any]) -> None:
    """Print a new key, and say what its maker should know."""
    print(made["key"])
    tell(f"key {made['id']}: keep it now, it is not shown again")
    if made.get("unknown_on"):
        tell(
            f"members of an older version do not know such a key and answer it 401: {', '.join(made['unknown_on'])}"
        )
    if made["closes"]:
        tell(
            "this is the first admin key: from now on every request needs a key (--key, SMG_KEY or"
            " --key-file for this command)"
        )


def _id_of(said: str) -> str:
    """Return the id; of a whole key, pasted by mistake, its id, so that the secret goes nowhere."""
    from smg_node.access.api_key import read_key_text

    whole = read_key_text(said)
    return said if whole is None else whole[0]


def _seconds(said: str) -> int:
    """Return in how many seconds that is; AdminError for what is no time to come."""
    span = _SPAN.fullmatch(said)
    if span is not None:
        return int(span[1]) * _UNITS_S[span[2]]
    try:
        day = datetime.strptime(said, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise AdminError(
            f"--expires takes 90d, 12h, 30m, 60s or a date such as 2027-01-31, not {said[:40]!r}"
        ) from None
    left_s = int((day - datetime.now(UTC)) / timedelta(seconds=1))
    if left_s <= 0:
        raise AdminError(f"--expires: {said} is over")
    return left_s


def _words(said: str) -> list[str]:
    return [word for part in said.split(",") if (word := part.strip())]


def _only(key: Mapping[str, Any]) -> str:
    """Return what a key is restricted to, in one cell; "" for nothing. Nodes of earlier versions do not say."""
    said = [f"{name}={','.join(key[name])}" for name in _LISTS if key.get(name)]
    if key.get("max_priority"):
        said.append(f"priority<={key['max_priority']}")
    return " ".join(said)


def _row(key: Mapping[str, Any]) -> Sequence[object]:
    times = [
        None if key[at] is None else format_time(key[at]) for at in ("created_ms", "expires_ms")
    ]
    state = key["state"] if key["source"] == "cluster" else f"{key['state']} (file)"
    return (
        key["id"], key["tenant"], key["role"], key["name"], state, *times, key["fingerprint"]
    )  # fmt: skip
