"""Live settings: the knobs that may be changed for the whole cluster at run time, and their values.

`live_keys` names them; type, range, default and help come from the declaration of the knob. A knob outside of named
things has the key of its path (`routing.policy`), one of a model is `models/NAME/policy`: names of models have dots
and slashes themselves.

The process that serves has no declarations (`frozen_settings.py`): it gets this table with its settings.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from smg_node.config.schema.model_name import check_model_name
from smg_node.config.schema.problems import kind_text, shown
from smg_node.config.schema.suggestions import did_you_mean

KEY_BYTES_MAX: Final = 256
"""What replicated state takes as a key."""
MODELS: Final = "models/"
"""What keys of models begin with."""
_NAME: Final = "NAME"
_ALIASES: Final = "models/NAME/aliases"
_WORD_CHARACTERS_MAX: Final = 256
_SPELLED_MAX: Final = 1e30

Kind: TypeAlias = Literal["switch", "integer", "number", "text", "choice", "words"]
Check: TypeAlias = Callable[[str], str]


class LiveError(ValueError):
    """This key or value cannot be set. `where` is a JSON path below the value: "" is all of it."""

    def __init__(self, message: str, where: str = "", *, unknown: bool = False) -> None:
        super().__init__(message)
        self.message: Final = message
        self.where: Final = where
        self.unknown: Final = unknown
        """Whether it is the key that is wrong."""


@dataclass(frozen=True, slots=True)
class LiveKnob:
    """One setting that may be changed while running. `most` bounds a text or the entries of a list."""

    key: str
    kind: Kind
    default: Any
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    most: int | None
    says: str
    why: str
    bounds: str

    def read(self, value: Any) -> Any:
        """Return the JSON value `value` as this setting's; LiveError says what is wrong with it."""
        match self.kind, value:
            case "switch", bool():
                return value
            case "integer" | "number", int() | float() if not isinstance(value, bool):
                return self._number(value)
            case "choice", str():
                return self._choice(value)
            case "text", str():
                return self._text(value)
            case "words", list() | tuple():
                return self._words(value)
            case _:
                raise LiveError(f"it must be {NEEDS[self.kind]}, got {kind_text(value)}")

    def about(self) -> Mapping[str, Any]:
        """Return what an operator may set, and what it does."""
        return {
            "kind": self.kind,
            "range": self.bounds,
            "default": plain(self.default),
            "help": self.says,
            **({"why": self.why} if self.why else {}),
        }

    def _number(self, value: float) -> float:
        low, high = self.low, self.high
        assert low is not None, "every number is declared with its bounds"
        assert high is not None, "every number is declared with its bounds"
        # A NaN is in no range either.
        if not low <= value <= high:
            # Python refuses to spell integers of thousands of digits.
            said = f"{value:g}" if abs(value) < _SPELLED_MAX else "it"
            raise LiveError(f"{said} is out of range {self.bounds}: {self.why}")
        if self.kind == "integer" and value != int(value):
            raise LiveError(f"it must be a whole number, got {value}")
        return int(value) if self.kind == "integer" else float(value)

    def _choice(self, value: str) -> str:
        if value not in self.choices:
            hint = did_you_mean(value, self.choices)
            listed = ", ".join(self.choices)
            raise LiveError(f"it must be one of {listed}, got {shown(value)}{hint}")
        return value

    def _text(self, value: str) -> str:
        if self.most is not None and len(value) > self.most:
            raise LiveError(f"it has more than {self.most} characters")
        return value

    def _words(self, value: Sequence[Any]) -> tuple[str, ...]:
        if self.most is not None and len(value) > self.most:
            raise LiveError(f"it has more than {self.most} entries")
        for at, word in enumerate(value):
            if not isinstance(word, str):
                raise LiveError(f"it must be text, got {kind_text(word)}", f"[{at}]")
            if len(word) > _WORD_CHARACTERS_MAX:
                raise LiveError(f"it has more than {_WORD_CHARACTERS_MAX} characters", f"[{at}]")
        return tuple(value)


class LiveTable:
    """Table of live knobs: from keys to knobs, and from written texts to values."""

    def __init__(
        self,
        knobs: Sequence[LiveKnob],
        choices: Mapping[str, Sequence[str]] | None = None,
        checks: Mapping[str, Check] | None = None,
    ) -> None:
        """Take the knobs, some of them with the only values that this node knows, such as policies.

        `checks` return what is wrong with a text, "" if nothing; they are called only for a value
        that was set.
        """
        said = choices or {}
        self._checks = checks or {}
        self.knobs: Final = {
            knob.key: _limited(knob, said[knob.key]) if knob.key in said else knob for knob in knobs
        }
        assert {*said, *self._checks} <= self.knobs.keys()

    def find(self, key: str) -> tuple[LiveKnob, str]:
        """Return the knob of a key, and the model it is about ("" for none); LiveError for an unknown key."""
        if not key.startswith(MODELS):
            if key in self.knobs and _NAME not in key.split("/"):
                return self.knobs[key], ""
            raise self._unknown(key)
        name, slash, field = key.removeprefix(MODELS).rpartition("/")
        knob = self.knobs.get(f"{MODELS}{_NAME}/{field}")
        if knob is None or not slash:
            raise self._unknown(key)
        try:
            check_model_name(name)
        except ValueError as error:
            raise LiveError(str(error), unknown=True) from None
        if len(key.encode("utf-8", "surrogatepass")) > KEY_BYTES_MAX or _has_surrogate(key):
            why = f"{shown(key)} is no key: more than {KEY_BYTES_MAX} bytes"
            raise LiveError(why, unknown=True)
        return knob, name

    def read(self, key: str, value: Any) -> Any:
        """Return the value that `value` spells for `key`; LiveError says what is wrong with either."""
        knob, _ = self.find(key)
        read = knob.read(value)
        if knob.key == _ALIASES:
            _check_names(read)
        if read and (check := self._checks.get(knob.key)) and (trouble := check(read)):
            raise LiveError(trouble)
        return read

    def single(self) -> Iterator[str]:
        """Yield every key that is not about a model, in the order of declaration."""
        return (key for key in self.knobs if not key.startswith(MODELS))

    def _unknown(self, key: str) -> LiveError:
        head, _, leaf = key.rpartition("/")
        if key.startswith(MODELS) and head:
            fields = [known.rpartition("/")[2] for known in self.knobs if known.startswith(MODELS)]
            hint = did_you_mean(leaf, fields)
            listed = ", ".join(f"models/NAME/{field}" for field in fields)
            return LiveError(
                f"no setting is called {shown(key)}: a model has {listed}{hint}", unknown=True
            )
        hint = did_you_mean(key, self.knobs)
        # A leaf that is meant without its section is too far from the whole for a likeness.
        same = [known for known in self.knobs if known.endswith((f".{key}", f"/{key}"))]
        if same and not hint:
            hint = f"; did you mean {same[0]!r}?"
        return LiveError(
            f"no setting that may be changed while running is called {shown(key)}{hint}",
            unknown=True,
        )


def plain(value: Any) -> Any:
    """Return a setting's value in types that JSON has."""
    return list(value) if isinstance(value, tuple) else value


NEEDS: Final[Mapping[str, str]] = {
    "switch": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "text": "text",
    "choice": "a word",
    "words": "a list of texts",
}


def _limited(knob: LiveKnob, choices: Sequence[str]) -> LiveKnob:
    """Return the knob of a text, with the only texts it may be."""
    assert knob.kind == "text"
    return replace(knob, kind="choice", choices=tuple(choices), bounds=" | ".join(choices))


def _check_names(names: Sequence[str]) -> None:
    for at, name in enumerate(names):
        try:
            check_model_name(name)
        except ValueError as error:
            raise LiveError(str(error), f"[{at}]") from None


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= ch <= "\udfff" for ch in text)
