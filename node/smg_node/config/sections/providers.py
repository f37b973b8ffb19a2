"""Providers knobs: the file that defines accounts at vendors, routes over their models, and prices."""

import json
from pathlib import Path
from typing import Any, Final

from pydantic import field_validator

from smg_node.config.schema.declaration import Section, number, place

_FILE_MAX_BYTES: Final = 4_194_304  # a thousand providers take 500 KiB
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
    """Return what the file says; ValueError, in an operator's words, for what is no such file."""
    # Imported here: a node without a file does not pay for it.
    from smg_node.config.schema.plain_yaml import read_plain

    try:
        with path.open("rb") as file:
            raw = file.read(_FILE_MAX_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from None
    if len(raw) > _FILE_MAX_BYTES:
        raise ValueError(f"{path} is larger than {_FILE_MAX_BYTES} bytes")
    try:
        found = read_plain(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    try:
        json.dumps(found, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"{path} holds what JSON cannot say, or is nested too deeply") from None
    if found is None:
        return {}
    if not isinstance(found, dict) or any(name not in _PARTS for name in found):
        raise ValueError(
            f"{path} must hold `providers:`, `routes:` and `prices:`, and nothing else"
        )
    for part in found:
        if found[part] is not None and not isinstance(found[part], dict):
            raise ValueError(f"{path}: {part} must be a section, one name a line")
    return {part: found[part] or {} for part in found}
