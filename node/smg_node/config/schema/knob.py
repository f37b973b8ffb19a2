"""Knob table: all knobs and their groups, read out of the settings tree.

Everything that speaks of knobs (flags, environment, file, help, reference, printing) walks this
table, so a knob that is declared exists everywhere and one that is not exists nowhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from smg_node.config.address import Address
from smg_node.config.schema.suggestions import nearest

KnobPath: TypeAlias = tuple[str, ...]
Kind: TypeAlias = Literal[
    "switch", "integer", "number", "text", "choice", "words", "mapping", "address", "path", "secret", "secrets"
]  # fmt: skip

# Stands for any name in the path of a knob below a mapping: ("models", "NAME", "context").
ANY_NAME: Final = "NAME"

_OUTER: Final[Mapping[object, Kind]] = {tuple: "words", dict: "mapping"}
SECRET_KINDS: Final[tuple[Kind, ...]] = ("secret", "secrets")
"""Kinds whose values are shown nowhere, and which may come from a file."""
LIST_KINDS: Final[tuple[Kind, ...]] = ("words", "secrets")
_TWIN: Final = "_file"

_KINDS: Final[Mapping[object, Kind]] = {
    bool: "switch",
    int: "integer",
    float: "number",
    str: "text",
    Address: "address",
    Path: "path",
    SecretStr: "secret",
}


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob. `low` and `high` are None unless it is a number; `default` is in words."""

    path: KnobPath
    kind: Kind
    says: str
    why: str
    default: str
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    short: str
    """The short flag of an essential knob, else empty."""
    aliases: tuple[str, ...]
    """Flags that users of other gateways know."""
    metavar: str
    """What stands for the value in a help text; empty where there need be none."""
    halves: Mapping[str, Literal["host", "port"]]
    """Flags that set one half of an address."""
    digits: bool = False
    """Whether a whole number in a file is such a text."""
    content_of: KnobPath = ()
    """The knob whose value is the content of this file; empty for one that is no such file."""

    @property
    def secret(self) -> bool:
        """Whether its value is shown nowhere."""
        return self.kind in SECRET_KINDS

    @property
    def dotted(self) -> str:
        """The path as it is written in messages: `http.listen`."""
        return ".".join(self.path)

    @property
    def long_flag(self) -> str:
        """The flag every knob has: `--http.body-max-bytes`."""
        return "--" + ".".join(self.path).replace("_", "-")

    @property
    def flags(self) -> tuple[str, ...]:
        """Every spelling of its flag, the preferred one first."""
        spelled = (self.short, self.long_flag, *self.aliases, *self.halves)
        return tuple(dict.fromkeys(flag for flag in spelled if flag))

    @property
    def environment(self) -> str:
        """The environment name, `SMG_HTTP__LISTEN`; for knobs of a named thing, that of the whole mapping."""
        path = self.path[: self.path.index(ANY_NAME)] if ANY_NAME in self.path else self.path
        return "SMG_" + "__".join(path).upper()

    @property
    def bounds(self) -> str:
        """The range or the choices in words, or the kind of value."""
        if self.low is not None and self.high is not None:
            return f"{format_number(self.low)}..{format_number(self.high)}"
        return " | ".join(self.choices) if self.choices else _KIND_WORDS[self.kind]


_KIND_WORDS: Final[Mapping[Kind, str]] = {
    "switch": "true | false",
    "integer": "whole number",
    "number": "number",
    "text": "text",
    "choice": "word",
    "words": "list",
    "mapping": "names with a text each",
    "address": "host:port",
    "path": "path",
    "secret": "secret text",
    "secrets": "list of secret texts",
}


_METAVARS: Final[Mapping[Kind, str]] = {
    "integer": "N",
    "number": "N",
    "address": "HOST:PORT",
    "secret": "TEXT",
    "secrets": "TEXT",
}

_HALVES: Final[tuple[Literal["host", "port"], ...]] = ("host", "port")


@dataclass(frozen=True, slots=True)
class Group:
    """A section of knobs; `says` is one sentence. The root has an empty path."""

    path: KnobPath
    says: str

    @property
    def dotted(self) -> str:
        """The path as it is written in messages."""
        return ".".join(self.path)


class Schema:
    """All knobs and groups below one model, in the order they are declared."""

    def __init__(self, root: type[BaseModel]) -> None:
        self._places: dict[KnobPath, Knob | Group] = {}
        for place in _walk(root, ()):
            assert place.path not in self._places
            self._places[place.path] = place
        self.knobs = tuple(place for place in self._places.values() if isinstance(place, Knob))
        self.groups = tuple(place for place in self._places.values() if isinstance(place, Group))

    def at(self, path: KnobPath) -> Knob | Group | None:
        """Return what is at `path`; below a mapping any name stands for itself."""
        return self._places.get(path) or self._places.get(_general(path, self._places))

    def suggest(self, path: KnobPath) -> str | None:
        """Return the dotted path of the knob or group that `path` most likely means."""
        known = {place.dotted: place for place in self._places.values() if place.path}
        same_leaf = [place.dotted for place in self.knobs if place.path[-1] == path[-1]]
        if same_leaf and ".".join(path) not in same_leaf:
            return same_leaf[0]
        found = nearest(".".join(path), known)
        if found is not None:
            return found
        leaf = nearest(path[-1], [knob.path[-1] for knob in self.knobs])
        return next((knob.dotted for knob in self.knobs if knob.path[-1] == leaf), None)


def format_number(value: float) -> str:
    """Return a number without an empty fraction: `15`, `0.05`."""
    return str(int(value)) if value == int(value) else repr(value)


def format_bytes(count: float) -> str:
    """Return a number of bytes in the largest unit that divides it, `128 MiB`; small ones as they are."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size and count % size == 0:
            return f"{format_number(count / size)} {unit}"
    return format_number(count)


def format_value(value: object) -> str:
    """Return a value the way an operator would write it in the environment."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return format_number(value)
        case tuple() | list():
            return ", ".join(map(str, value)) if value else "none"
        case SecretStr():
            return "**********"
        case None | "":
            return "none"
        case _:
            return str(value)


def _general(path: KnobPath, places: Mapping[KnobPath, Knob | Group]) -> KnobPath:
    """Return the path with the name below a mapping replaced by ANY_NAME."""
    for depth in range(len(path)):
        if (*path[:depth], ANY_NAME) in places:
            return (*path[:depth], ANY_NAME, *path[depth + 1 :])
    return path


def _walk(model: type[BaseModel], path: KnobPath) -> Iterator[Knob | Group]:
    yield Group(path, (model.__doc__ or "").strip().splitlines()[0])
    for name, field in model.model_fields.items():
        here = (*path, name)
        annotation = _without_none(field.annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _walk(annotation, here)
        elif get_origin(annotation) is dict and get_args(annotation)[1] is not str:
            element = get_args(annotation)[1]
            if not isinstance(element, type):
                # A value under each name, and no section.
                yield Group(here, field.description or "")
                yield _knob((*here, ANY_NAME), field, element)
                continue
            yield Group(here, f"{(element.__doc__ or '').strip().splitlines()[0]}")
            yield from _walk(element, (*here, ANY_NAME))
        else:
            yield (knob := _knob(here, field, annotation))
            if knob.secret or field_extra(field).get("in_file"):
                yield _twin(knob)


def _without_none(annotation: Any) -> Any:
    if isinstance(annotation, UnionType):
        (annotation,) = (part for part in get_args(annotation) if part is not NoneType)
    return annotation


def field_extra(field: FieldInfo) -> Mapping[str, Any]:
    """Return what the declaration of a knob says beside its type and bounds."""
    extra: Any = field.json_schema_extra
    return extra if isinstance(extra, Mapping) else {}


def _twin(knob: Knob) -> Knob:
    """Return the knob that names a file for the value of another one."""
    many = ", one a line" if knob.kind in LIST_KINDS else ""
    return Knob(
        path=(*knob.path[:-1], knob.path[-1] + _TWIN),
        kind="path",
        says=f"File that {knob.dotted} is read from at start{many}; at most 64 KiB, and for its owner only.",
        why="",
        default="none",
        low=None,
        high=None,
        choices=(),
        short="",
        aliases=(),
        metavar="FILE",
        halves={},
        content_of=knob.path,
    )


def _knob(path: KnobPath, field: FieldInfo, annotation: Any) -> Knob:
    extra = field_extra(field)
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    outer = _OUTER.get(get_origin(annotation))
    kind: Kind = outer or ("choice" if choices else _KINDS[annotation])
    if kind == "words" and SecretStr in get_args(annotation):
        kind = "secrets"
    return Knob(
        path=path,
        kind=kind,
        says=field.description or "",
        why=extra.get("why", ""),
        default=extra.get("shown") or _say_default(path, field),
        low=next((mark.ge for mark in field.metadata if hasattr(mark, "ge")), None),
        high=next((mark.le for mark in field.metadata if hasattr(mark, "le")), None),
        choices=choices,
        short=extra.get("short", ""),
        aliases=tuple(extra.get("aliases", ())),
        metavar=extra.get("metavar") or "|".join(choices) or _METAVARS.get(kind, ""),
        halves={extra[half]: half for half in _HALVES if half in extra},
        digits=bool(extra.get("digits")),
    )


def _say_default(path: KnobPath, field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    words = format_value(field.default)
    if not path[-1].endswith("_bytes") or format_bytes(field.default) == words:
        return words
    return f"{words} ({format_bytes(field.default)})"
