"""Frozen settings: plain values of the settings tree, without pydantic, for the serving process.

The libraries that read and check a configuration weigh 11 MB and have nothing to do afterwards, so
they stay in the process that reads it (`child_process.py`). This is what leaves that process: the
same names and the same frozen values, without the models behind them.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, cast

if TYPE_CHECKING:
    from pydantic import BaseModel
    from typing_extensions import TypeIs

    # `as`: exported. To a type checker settings are the models, with every knob.
    from smg_node.config.settings import Settings as Settings


class PlainSection:
    """One section: its knobs and what it derives from them, as attributes; iterates over the knobs."""

    __slots__ = ("__dict__", "_knobs")
    _knobs: tuple[str, ...]

    def __init__(self, knobs: Mapping[str, object], derived: Mapping[str, object]) -> None:
        object.__setattr__(self, "_knobs", tuple(knobs))
        self.__dict__.update(knobs, **derived)

    def __iter__(self) -> Iterator[tuple[str, object]]:
        """Yield names and values as a model does, so that `dict(section)` is the same for both."""
        for name in self._knobs:
            yield name, self.__dict__[name]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"settings are frozen: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"settings are frozen: {name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlainSection) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        return f"PlainSection({', '.join(self._knobs)})"

    def __getstate__(self) -> tuple[Any, ...]:
        return self._knobs, self.__dict__

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        knobs, values = state
        object.__setattr__(self, "_knobs", knobs)
        self.__dict__.update(values)


class SecretText:
    """A secret value: reads like pydantic's `SecretStr`, and is shown as little."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self) -> str:
        """Return the secret."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "SecretText('**********')"

    __str__ = __repr__


if not TYPE_CHECKING:
    Settings = PlainSection


def plain_settings(settings: "Settings") -> "Settings":
    """Return a copy without the models; it reads like `settings`, and pickles without the libraries."""
    # No Settings in truth, but everything that is read of one: knobs, sections and properties.
    return cast("Settings", _plain(settings))


def with_values(settings: "Settings", values: Mapping[tuple[str, ...], object]) -> "Settings":
    """Return a copy in which the knobs at these paths have these values; nothing is checked."""
    return cast("Settings", _with(settings, values))


def _with(section: Any, values: Mapping[tuple[str, ...], object]) -> Any:
    own = {path[0]: value for path, value in values.items() if len(path) == 1}
    below: dict[str, dict[tuple[str, ...], object]] = {}
    for path, value in values.items():
        if len(path) > 1:
            below.setdefault(path[0], {})[path[1:]] = value
    inner = {name: _with(getattr(section, name), deeper) for name, deeper in below.items()}
    return _changed(section, {**own, **inner})


def is_section(value: object) -> "TypeIs[BaseModel]":
    """Whether `value` is a section, plain or a model; both iterate over their knobs."""
    # Recognised by its attributes, because importing what it may be an instance of is what is saved here.
    return isinstance(value, PlainSection) or hasattr(value, "__pydantic_fields__")


def _plain(value: Any) -> Any:
    if hasattr(value, "__pydantic_fields__"):
        knobs = {name: _plain(inner) for name, inner in value}
        return PlainSection(knobs, {name: getattr(value, name) for name in _properties(value)})
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if hasattr(value, "get_secret_value"):
        return SecretText(value.get_secret_value())
    return value


def _changed(section: Any, values: Mapping[str, object]) -> Any:
    if not isinstance(section, PlainSection):
        return section.model_copy(update=dict(values))
    knobs = dict(section)
    assert values.keys() <= knobs.keys()
    derived = {name: value for name, value in vars(section).items() if name not in knobs}
    return PlainSection({**knobs, **values}, derived)


def _properties(model: "BaseModel") -> list[str]:
    """Return the names of what the sections themselves derive, not of what their library brings."""
    ours = [kind for kind in type(model).__mro__ if not kind.__module__.startswith("pydantic")]
    return [
        name for kind in ours for name, member in vars(kind).items() if isinstance(member, property)
    ]
