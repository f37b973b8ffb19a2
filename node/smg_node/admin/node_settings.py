"""Node settings for commands that run without a node: the configuration a node would read here.

A node may have been told on its command line what nobody told here. So where nothing names the place, a
node that runs is asked, and what it does not use is not looked at.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from smg_node.admin.client import AdminClient, AdminError

if TYPE_CHECKING:
    from smg_node.config.sources.loader import Loaded

_STORE: Final = ("storage", "url")
_FOLDER: Final = ("data_dir",)
_NODE_S: Final = 2.0
"""Longest that a node is waited for which may not be there."""

Store = Annotated[
    str,
    typer.Option("--store", metavar="URL", help="The store, if not as the configuration says."),
]
ConfigFile = Annotated[
    str, typer.Option("--config", metavar="FILE", help="The configuration of the node.")
]
Folder = Annotated[
    str,
    typer.Option("--data-dir", metavar="DIR", help="Where the node's own files are: SQLite's too."),
]
NodeName = Annotated[
    str, typer.Option("--name", metavar="NAME", help="The node, if not as the configuration says.")
]


def loaded(*, store: str = "", config: str = "", data_dir: str = "", name: str = "") -> "Loaded":
    """Return the node's settings with their origins; AdminError with what is wrong with them."""
    from smg_node.config.schema.knob import Schema
    from smg_node.config.schema.problems import ConfigurationError
    from smg_node.config.settings import Settings
    from smg_node.config.sources.command_line import parse_flags
    from smg_node.config.sources.loader import load_settings

    said = {"--store": store, "--config": config, "--data-dir": data_dir, "--name": name}
    words = [word for flag, value in said.items() if value for word in (flag, value)]
    schema = Schema(Settings)
    try:
        return load_settings(parse_flags(words, schema), os.environ, schema)
    except ConfigurationError as error:
        raise AdminError("; ".join(error.lines())) from None


def store_origin(found: "Loaded") -> str:
    """Return in words who said where the store is."""
    said = [found.origins[path] for path in (_STORE, _FOLDER) if path in found.origins]
    if said:
        return ", ".join(dict.fromkeys(said))
    return "the default" if found.file is None else f"the default; file {found.file} names none"


def check_node_agrees(found: "Loaded", client: AdminClient) -> None:
    """AdminError if nothing names the store here, and the node that runs keeps another one.

    A node that does not run, or does not show its settings to whoever asks, agrees.
    """
    if found.file is not None or not found.origins.keys().isdisjoint((_STORE, _FOLDER)):
        return
    try:
        card = replace(client, timeout_s=min(client.timeout_s, _NODE_S)).ask("GET", "server_info")
    except AdminError:
        return
    settings: Any = card.get("settings") if isinstance(card, dict) else None
    if not isinstance(settings, dict):
        return
    folder, storage = settings.get("data_dir"), settings.get("storage")
    url = storage.get("url") if isinstance(storage, dict) else None
    flags = []
    if isinstance(url, str) and url != found.settings.storage.url:
        flags.append(f"--store {url}")
    if isinstance(folder, str) and Path(folder) != found.settings.data_dir:
        flags.append(f"--data-dir {folder}")
    if flags:
        raise AdminError(
            f"the node at {client.url} keeps its history elsewhere than is said here: add"
            f" {' '.join(flags)}, or name its configuration (--config, SMG_CONFIG)"
        )
