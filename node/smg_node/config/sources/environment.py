"""Environment source: variables of `SMG_` and the path of a knob, `__` between levels.

Lists are separated by commas or blanks, or are JSON. `SMG_MODELS` is a JSON object. A name that begins
with `SMG_` and means nothing is refused: a typo must not become a default in silence.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from smg_node.config.schema.knob import ANY_NAME, LIST_KINDS, Group, Knob, KnobPath, Schema
from smg_node.config.schema.problems import Problem, shown
from smg_node.config.schema.suggestions import did_you_mean
from smg_node.config.schema.value_parser import Entry

PREFIX: Final = "SMG_"
CONFIG_FILE: Final = "SMG_CONFIG"

# Read by other commands of this distribution.
_OTHERS: Final = frozenset(
    {
        *(
            CONFIG_FILE,
            "SMG_ADMIN_URL",
            "SMG_ADMIN_KEY",
            "SMG_KEY",
            "SMG_KEY_FILE",
            "SMG_TOKEN_COMMAND",
        ),
        *("SMG_CA_FILE", "SMG_SERVER_NAME", "SMG_CERT_FILE", "SMG_CERT_KEY_FILE"),
    }
)

# Where the tests of this distribution find servers; nodes that they start see it too.
_OF_TESTS: Final = "SMG_TEST_"

# Kubernetes describes every Service of a namespace to its pods; one called `smg-node` or `smg` gives
# SMG_NODE_SERVICE_HOST, SMG_NODE_PORT_30000_TCP_ADDR and so on. They are no typos.
_SERVICE_LINK: Final = re.compile(
    r"SMG_(?:[A-Z0-9]+_)*?"
    r"(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)


def read_environment(
    environ: Mapping[str, str], schema: Schema
) -> tuple[list[Entry], list[Problem]]:
    """Return what the environment sets, sorted by name, and what is wrong with it."""
    by_name = {knob.environment: knob for knob in schema.knobs if ANY_NAME not in knob.path}
    mappings = {
        knob.environment: knob.path[: knob.path.index(ANY_NAME)]
        for knob in schema.knobs
        if ANY_NAME in knob.path
    }
    entries: list[Entry] = []
    problems: list[Problem] = []
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in _OTHERS or name.startswith(_OF_TESTS):
            continue
        if _SERVICE_LINK.fullmatch(name):
            continue
        place = f"environment {name}"
        try:
            if name in by_name:
                raw = _raw(by_name[name], environ[name])
                entries.append(Entry(by_name[name].path, raw, place))
            elif name in mappings:
                entries += _mapping(mappings[name], environ[name], place, schema, problems)
            else:
                hint = did_you_mean(name, [*by_name, *mappings, *_OTHERS])
                problems.append(Problem(name, f"no knob has this name{hint}", "environment"))
        except ValueError as error:
            problems.append(Problem(name, str(error), "environment"))
    return entries, problems


def _raw(knob: Knob, text: str) -> object:
    if knob.kind not in LIST_KINDS:
        return text
    if text.lstrip().startswith("["):
        return _json(text, secret=knob.secret)
    return [word for word in re.split(r"[,\s]+", text) if word]


def _json(text: str, *, secret: bool = False) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON" if secret else f"it is not JSON: {shown(text)}") from None


def _mapping(
    path: KnobPath, text: str, place: str, schema: Schema, problems: list[Problem]
) -> list[Entry]:
    """The entries of a JSON object of named things, such as SMG_MODELS."""
    things = _json(text)
    if not isinstance(things, dict):
        raise ValueError('it must be a JSON object, as in {"my-model": {"context": 8192}}')
    entries = []
    for name, fields in things.items():
        if isinstance(schema.at((*path, name)), Knob):
            entries.append(Entry((*path, name), fields, place))
            continue
        if not isinstance(fields, dict):
            problems.append(Problem(".".join((*path, name)), "it must be a JSON object", place))
            continue
        entries.append(Entry((*path, name), {}, place))
        entries += _fields((*path, name), fields, place, schema, problems)
    return entries


def _fields(
    path: KnobPath,
    fields: Mapping[str, object],
    place: str,
    schema: Schema,
    problems: list[Problem],
) -> list[Entry]:
    """The entries of one named thing, and of the sections in it."""
    entries: list[Entry] = []
    for key, value in fields.items():
        here = (*path, key)
        known = schema.at(here)
        if isinstance(known, Group) and isinstance(value, dict):
            entries += _fields(here, value, place, schema, problems)
        elif isinstance(known, Group):
            problems.append(Problem(".".join(here), "it must be a JSON object", place))
        elif known is None:
            names = [knob.path[-1] for knob in schema.knobs if knob.path[0] == path[0]]
            hint = did_you_mean(key, names)
            problems.append(Problem(".".join(here), f"there is no such knob{hint}", place))
        else:
            entries.append(Entry(here, value, place))
    return entries
