"""Definition file: YAML of named definitions in a few parts, read whole and handed on as plain values."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

BYTES_MAX: Final = 4_194_304  # a thousand providers take 500 KiB


def read_definition_file(path: Path, parts: Sequence[str]) -> dict[str, Any]:
    """Return what a file says by part; ValueError, in an operator's words, for what is no such file."""
    # Imported here: a node without a file does not pay for it.
    from smg_node.config.schema.plain_yaml import read_plain

    text = _text(path)
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
    if not isinstance(found, dict) or any(name not in parts for name in found):
        raise ValueError(f"{path} must hold {_listed(parts)}, and nothing else")
    for part in found:
        if found[part] is not None and not isinstance(found[part], dict):
            raise ValueError(f"{path}: {part} must be a section, one name a line")
    return {part: found[part] or {} for part in found}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(BYTES_MAX + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ValueError(f"cannot read {path}: {why}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from None
    if len(raw) > BYTES_MAX:
        raise ValueError(f"{path} is larger than {BYTES_MAX} bytes")
    return text


def _listed(parts: Sequence[str]) -> str:
    named = [f"`{part}:`" for part in parts]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
