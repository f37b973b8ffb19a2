"""Node settings for commands that run without a node: the configuration a node would read here."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from smg_node.admin.client import AdminError

if TYPE_CHECKING:
    from smg_node.config.settings import Settings

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


def settings_of(
    *, store: str = "", config: str = "", data_dir: str = "", name: str = ""
) -> "Settings":
    """Return the node's settings; AdminError with what is wrong with them."""
    from smg_node.config.schema.knob import Schema
    from smg_node.config.schema.problems import ConfigurationError
    from smg_node.config.settings import Settings
    from smg_node.config.sources.command_line import parse_flags
    from smg_node.config.sources.loader import load_settings

    said = {"--store": store, "--config": config, "--data-dir": data_dir, "--name": name}
    words = [word for flag, value in said.items() if value for word in (flag, value)]
    schema = Schema(Settings)
    try:
        return load_settings(parse_flags(words, schema), os.environ, schema).settings
    except ConfigurationError as error:
        raise AdminError("; ".join(error.lines())) from None
