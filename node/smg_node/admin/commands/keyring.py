"""Keyring commands, `smg-admin cluster keyring`: make keys, rotate them over all members.

A rotation is `install` (all members can read with the new key), `use` (all write with it), `remove`
(the old one is gone). A step that not every member took is refused, so that no member is cut off.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from smg_node.admin.client import AdminError
from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.output import print_json, print_table, tell

_STEP_S: Final = 25.0
"""A step asks every member what it holds, then tells it: 5 s for each, and as much again where a connection ends."""

keyring_app = typer.Typer(
    cls=CommandGroup,
    help="Make keys, and rotate them on every member.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Fingerprint = Annotated[
    str,
    typer.Argument(metavar="FINGERPRINT", help="As `keyring list` shows it.", show_default=False),
]
Force = Annotated[
    bool, typer.Option("--force", help="Also when a member cannot take part: it will be cut off.")
]


@keyring_app.command("generate")
def generate(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="A new file, readable by its owner only."),
    ] = None,
) -> None:
    """Make a key; needs no node. Every member of a cluster is started with it: --mesh-key FILE."""
    from smg_mesh.mesh import make_key

    key = make_key()
    if out is None:
        print(key)
        return
    try:
        with open(os.open(out, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(f"{key}\n")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise AdminError(f"cannot write {out}: {reason}") from None
    tell(f"{out} holds a new key; give it to every node: smg-node --mesh-key {out}")


@keyring_app.command("list")
def list_keys(context: typer.Context) -> None:
    """List the keys by fingerprint, and which members hold them."""
    options = options_of(context)
    patience_s = max(options.client.timeout_s, _STEP_S)
    answer = options.client.ask("GET", "v1", "cluster", "keyring", timeout_s=patience_s)
    _show(answer, as_json=options.as_json)


@keyring_app.command("install")
def install(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Holds the key in its first line; - is the standard input.",
            show_default=False,
        ),
    ],
    force: Force = False,
) -> None:
    """Give every member another key to read with; nobody writes with it yet."""
    _change(context, "install", _key_of(file), force=force)


@keyring_app.command("use")
def use(context: typer.Context, fingerprint: Fingerprint, force: Force = False) -> None:
    """Let every member write with a key that all of them have."""
    _change(context, "use", fingerprint, force=force)


@keyring_app.command("remove")
def remove(context: typer.Context, fingerprint: Fingerprint, force: Force = False) -> None:
    """Take a key that nobody writes with any more from every member."""
    _change(context, "remove", fingerprint, force=force)


def _change(context: typer.Context, operation: str, key: str, *, force: bool) -> None:
    options = options_of(context)
    body = {"operation": operation, "key": key, "force": force}
    patience_s = max(options.client.timeout_s, _STEP_S)
    answer = options.client.ask("POST", "v1", "cluster", "keyring", body=body, timeout_s=patience_s)
    _show(answer, as_json=options.as_json)


def _show(answer: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    members: Mapping[str, str] = answer["members"]
    print_table(
        ("FINGERPRINT", "ENCRYPTS", "HELD BY"),
        (
            (
                key["fingerprint"],
                key["primary"],
                f"{len(key['members'])} of {len(members)}: {', '.join(sorted(key['members']))}",
            )
            for key in answer["keys"]
        ),
        empty="There are no keys.",
    )
    for name, said in sorted(members.items()):
        if said != "ok":
            tell(f"{name}: {said}")


def _key_of(file: str) -> str:
    """The first key in a file, or of the standard input."""
    try:
        text = sys.stdin.read(65_536) if file == "-" else Path(file).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", None) or "it is no text").lower()
        raise AdminError(f"cannot read {file}: {reason}") from None
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    key = next((line for line in lines if line), None)
    if key is None:
        raise AdminError(f"{file} holds no key; `smg-admin cluster keyring generate` makes one")
    return key
