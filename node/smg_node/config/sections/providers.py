"""Providers knobs: the file that defines accounts at vendors, routes over their models, and prices."""

import json
from pathlib import Path
from typing import Any, Final

from pydantic import field_validator

from smg_node.config.schema.declaration import Section, number, place
from smg_node.config.schema.definition_file import read_definition_file

_PARTS: Final = ("providers", "routes", "prices")


class Providers(Section):
    """Vendors' models that this node can reach besides engines."""

    file: Path | None = place(
        None,
        "YAML file of `providers`, `routes` over models, and `prices`.",
        short="--providers",
        metavar="FILE",
    )
    state_kept_s: int = number(
        86_400,
        "Seconds for which vendors' opaque state is kept beside answers, for clients that drop it; in the history store, "
        "sealed; 0 keeps none.",
        low=0,
        high=2_592_000,
        why="a loop of tools that rests for longer has usually ended; 0 leaves state to clients alone",
    )

    @property
    def definitions(self) -> str:
        """What the file says, as JSON: an object of `providers`, `routes` and `prices`; "" without a file."""
        return "" if self.file is None else json.dumps(_read(self.file))

    @field_validator("file")
    @classmethod
    def _readable(cls, path: Path | None) -> Path | None:
        if path is None:
            return None
        path = path.expanduser()
        _read(path)
        return path


def _read(path: Path) -> dict[str, Any]:
    return read_definition_file(path, _PARTS)
