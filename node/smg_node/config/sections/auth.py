"""Auth knobs: admin key file, and whether the data API needs a key."""

from pathlib import Path
from typing import Literal

from pydantic import field_validator

from smg_node.config.schema.declaration import Section, choice, place


class Auth(Section):
    """Who may ask this node for what."""

    admin_key_file: Path | None = place(
        None,
        "File of admin keys that are good on this node whatever the cluster knows, one smg-ID-SECRET a line:"
        " to make the first keys with, and to get in again; `smg-admin keys generate` makes one.",
        metavar="FILE",
    )
    data: Literal["auto", "open", "closed"] = choice(
        "auto",
        "Who may use the data API: `auto` everyone until an admin key exists and then whoever has a key,"
        " `open` everyone always, `closed` only whoever has a key.",
    )

    @field_validator("admin_key_file")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path.expanduser() if path is not None else None
