"""Effective configuration as YAML that could be given back, with the origin of each value."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from smg_node.config.frozen_settings import is_section
from smg_node.config.masking import MASK, masked
from smg_node.config.schema.problems import printable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from smg_node.config.schema.knob import KnobPath

_HEAD: Final = "# The effective configuration. A comment says where a value comes from; the others are defaults."


def render_settings(
    settings: "BaseModel",
    origins: "Mapping[KnobPath, str]",
    files: "Mapping[KnobPath, str] | None" = None,
) -> str:
    """Return all knobs with their values; a comment names the origin of each that was given.

    Reading it back gives equal settings, except for what is masked: secrets, and user names,
    passwords and the like in URLs. Unset knobs are left out. `files` are those that values were read from: they are
    named in place of what is in them.
    """
    return "\n".join([_HEAD, *_lines(dict(settings), (), origins, files or {})]) + "\n"


def _lines(
    values: Mapping[str, object],
    path: "KnobPath",
    origins: "Mapping[KnobPath, str]",
    files: "Mapping[KnobPath, str]",
) -> Iterator[str]:
    indent = "  " * len(path)
    for name, value in values.items():
        here = (*path, name)
        if here in files:
            here, value = (*path, f"{name}_file"), files[here]
        key = _yaml(here[-1])
        if isinstance(value, Mapping) or is_section(value):
            below = list(_lines(dict(value), here, origins, files))
            yield f"{indent}{key}:" if below else f"{indent}{key}: {{}}"
            yield from below
        elif value is not None:
            comment = f"  # {printable(origins[here])}" if here in origins else ""
            yield f"{indent}{key}: {_yaml(_plain(value))}{comment}"


def _plain(value: object) -> object:
    """The value in types that YAML has, without anything secret."""
    match value:
        case bool() | int():
            return value
        case float():
            return int(value) if value.is_integer() else value
        case tuple():
            return [_plain(entry) for entry in value]
        case _ if hasattr(value, "get_secret_value"):
            return MASK
        case _:
            return masked(str(value))


def _yaml(value: object) -> str:
    """The value on one line."""
    # Imported here: only this and a configuration file need it.
    import yaml

    # A quoted scalar is the one form that keeps control characters on its line.
    style = '"' if isinstance(value, str) and not value.isprintable() else None
    text: str = yaml.safe_dump(
        value, default_flow_style=True, default_style=style, width=2**31, allow_unicode=True
    )
    return text.removesuffix("...\n").strip()


def shown_settings(settings: "BaseModel") -> dict[str, object]:
    """Return all settings as plain values, masked as in `render_settings`."""
    return {
        name: shown_settings(value) if is_section(value) else _shown(value)
        for name, value in dict(settings).items()
    }


def _shown(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            str(name): shown_settings(item) if is_section(item) else _plain(item)
            for name, item in value.items()
        }
    return None if value is None else _plain(value)
