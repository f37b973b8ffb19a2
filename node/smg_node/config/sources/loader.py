"""Loader of settings: merges default, file, environment and flags, in this order of precedence.

The result is one frozen tree. Every given value keeps its origin, so that a refusal can name it and
`--print-config` can show it. All that can be found wrong is found in one go: unknown names, values
of the wrong shape, values out of bounds.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from smg_node.config.address import join_host_port, parse_address
from smg_node.config.schema.knob import Knob, KnobPath, Schema
from smg_node.config.schema.problems import ConfigurationError, Problem
from smg_node.config.schema.value_parser import Entry, read_value
from smg_node.config.settings import Settings
from smg_node.config.sources.command_line import CONFIG_FLAG, CommandLine, Half
from smg_node.config.sources.environment import CONFIG_FILE, read_environment
from smg_node.config.sources.secret_values import take_secrets
from smg_node.config.sources.section_reader import problem_text
from smg_node.config.sources.yaml_file import read_file


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and the origin of each given value.

    `files` are those that values were read from; `warnings` what an operator should know of secrets.
    """

    settings: Settings
    origins: Mapping[KnobPath, str]
    file: Path | None
    files: Mapping[KnobPath, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def load_settings(asked: CommandLine, environ: Mapping[str, str], schema: Schema) -> Loaded:
    """Return the settings; raises ConfigurationError with everything that is wrong."""
    problems = list(asked.problems)
    file, named_by = _config_file(asked, environ)
    layers: list[Entry] = []
    if file is not None:
        try:
            entries, found = read_file(file, schema, named_by=named_by)
        except ConfigurationError as error:
            entries, found = [], list(error.problems)
        layers += entries
        problems += found
    entries, found = read_environment(environ, schema)
    problems += found
    said = {entry.path: entry for entry in [*layers, *entries]}
    _lay_halves(said, asked, schema, problems)
    said |= {entry.path: entry for entry in asked.entries}
    origins = {path: entry.place for path, entry in said.items()}
    secrets = take_secrets(said, schema, problems)
    settings = _settle(said, schema, problems)
    if settings is None:
        raise ConfigurationError(problems)
    return Loaded(settings, origins, file, secrets.files, tuple(secrets.warnings))


def _config_file(asked: CommandLine, environ: Mapping[str, str]) -> tuple[Path | None, str]:
    if asked.config is not None:
        return Path(os.path.expanduser(asked.config)), f"flag {CONFIG_FLAG}"
    if environ.get(CONFIG_FILE):
        return Path(os.path.expanduser(environ[CONFIG_FILE])), f"environment {CONFIG_FILE}"
    return None, ""


def _lay_halves(
    said: dict[KnobPath, Entry], asked: CommandLine, schema: Schema, problems: list[Problem]
) -> None:
    """Lay `--host` and `--port` over the address that file, environment or default give."""
    whole = {entry.path: entry.place for entry in asked.entries}
    for half in asked.halves:
        knob = schema.at(half.path)
        assert isinstance(knob, Knob)
        if half.path in whole:
            message = (
                f"it says the same as {whole[half.path].removeprefix('flag ')}; give one of them"
            )
            problems.append(Problem(half.place.removeprefix("flag "), message, "command line"))
            continue
        below = said[half.path].raw if half.path in said else knob.default
        try:
            said[half.path] = Entry(half.path, _with_half(str(below), half), half.place)
        except ValueError:
            # What is below is wrong itself, and its refusal says more than a patched version of it.
            continue


def _with_half(below: str, half: Half) -> str:
    address = parse_address(below)
    if half.half == "port":
        return f"{join_host_port(address.host, 0).removesuffix('0')}{half.text}"
    return join_host_port(half.text.removeprefix("[").removesuffix("]"), address.port)


def _settle(
    said: Mapping[KnobPath, Entry], schema: Schema, problems: list[Problem]
) -> Settings | None:
    """Return the settings made of `said`, or None when there are problems; adds those it finds."""
    tree: dict[str, Any] = {}
    for path, entry in said.items():
        knob = schema.at(path)
        if not isinstance(knob, Knob):
            _put(tree, path, {})
            continue
        try:
            _put(tree, path, read_value(knob, entry.raw))
        except ValueError as error:
            problems.append(Problem(".".join(path), str(error), entry.place))
    try:
        settings = Settings(**tree)
    except ValidationError as error:
        problems += [_problem(detail, said, schema) for detail in error.errors(include_url=False)]
        return None
    return settings if not problems else None


def _put(tree: dict[str, Any], path: KnobPath, value: object) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    if value == {}:
        tree.setdefault(path[-1], {})
    else:
        tree[path[-1]] = value


def _problem(detail: ErrorDetails, said: Mapping[KnobPath, Entry], schema: Schema) -> Problem:
    names = tuple(str(part) for part in detail["loc"] if part != "[key]")
    path = next((names[:end] for end in range(len(names), 0, -1) if names[:end] in said), names)
    rest = "".join(f"[{name}]" for name in names[len(path) :] if name.isdecimal())
    knob = schema.at(path)
    message = problem_text(detail, knob if isinstance(knob, Knob) else None)
    return Problem(".".join(path) + rest, message, _place_of(path, said))


def _place_of(path: KnobPath, said: Mapping[KnobPath, Entry]) -> str:
    if path in said:
        return said[path].place
    below: Iterable[Entry] = (entry for at, entry in said.items() if at[: len(path)] == path)
    first = next(iter(below), None) if path else None
    return first.place if first is not None else ""
