"""Loads settings in a test: flags, an environment and a file, all of them given."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import dedent

from smg_node.config.schema.knob import Schema
from smg_node.config.schema.problems import ConfigurationError
from smg_node.config.settings import Settings
from smg_node.config.sources.command_line import parse_flags
from smg_node.config.sources.loader import Loaded, load_settings

SCHEMA = Schema(Settings)


def load(argv: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> Loaded:
    """Return what the flags and the environment (the process's own is not looked at) make."""
    return load_settings(parse_flags(argv, SCHEMA), environ or {}, SCHEMA)


def refusal(argv: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> list[str]:
    """Return the lines of the refusal; the configuration must be refused."""
    try:
        load(argv, environ)
    except ConfigurationError as error:
        return error.lines()
    raise AssertionError("this configuration was accepted")


def write_yaml(folder: Path, text: str) -> str:
    """Write an indented block as a YAML file and return its path."""
    path = folder / "smg.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    return str(path)
