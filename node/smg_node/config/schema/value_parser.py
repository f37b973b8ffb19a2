"""Value parser: text or YAML to the type of a knob; bounds are checked by the settings."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from smg_node.config.schema.knob import Kind, Knob, KnobPath
from smg_node.config.schema.problems import shown
from smg_node.config.schema.suggestions import did_you_mean

SWITCH_WORDS: Final[Mapping[str, bool]] = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}

# Longer digit strings are no sizes but mistakes, and Python refuses to read them past 4,300.
_DIGITS_MAX = 30
_INTEGER = re.compile(r"[+-]?[0-9](?:_?[0-9])*", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(?:[0-9](?:_?[0-9])*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One given value: knob, value, and its origin ("flag --http", "file x.yaml, line 3")."""

    path: KnobPath
    raw: object
    place: str


def read_value(knob: Knob, raw: object) -> object:
    """Return `raw` in the type of `knob`; ValueError with words for an operator otherwise.

    `raw` is text (flags, environment) or what YAML made of it. Text is accepted for every kind, so a
    quoted number in a file is a number; the other way round (an unquoted `123` as a name) is refused.
    """
    if raw is None:
        raise ValueError("it has no value (null)")
    if knob.secret:
        return _secret(knob, raw)
    if isinstance(raw, str):
        return _from_text(knob, raw.strip() if knob.kind != "text" else raw)
    return _from_yaml(knob, raw)


def _secret(knob: Knob, raw: object) -> object:
    """Return a secret, or several, as text; what is refused is not in the refusal."""
    texts = raw if isinstance(raw, list) else [raw]
    wanted = "a list of texts" if knob.kind == "secrets" else "text"
    if isinstance(raw, list) is not (knob.kind == "secrets"):
        raise ValueError(f"it must be {wanted}")
    if not all(isinstance(one, str) for one in texts):
        raise ValueError(f"it must be {wanted}; put quotes around what looks like a number")
    return tuple(texts) if knob.kind == "secrets" else texts[0]


def _from_text(knob: Knob, text: str) -> object:
    match knob.kind:
        case "switch":
            if text.lower() not in SWITCH_WORDS:
                raise ValueError(f"it must be true or false, got {shown(text)}")
            return SWITCH_WORDS[text.lower()]
        case "integer":
            if not _INTEGER.fullmatch(text) or len(text) > _DIGITS_MAX:
                raise ValueError(f"it must be a whole number, got {shown(text)}")
            return int(text)
        case "number":
            if not _NUMBER.fullmatch(text) or len(text) > _DIGITS_MAX:
                raise ValueError(f"it must be a number, got {shown(text)}")
            return float(text)
        case "choice":
            return _choice(knob, text)
        case "words":
            raise ValueError(f"it must be a list, got the text {shown(text)}")
        case "mapping":
            return _from_yaml(knob, _object(text))
        case "path" if not text or "\0" in text:
            raise ValueError("it must be a path")
        case _:
            return text


def _from_yaml(knob: Knob, raw: object) -> object:
    match knob.kind, raw:
        case "switch", bool():
            return raw
        case "integer", float() if raw.is_integer() and abs(raw) < 2**53:
            return int(raw)
        case ("integer", int()) | ("number", int() | float()) if not isinstance(raw, bool):
            return raw
        case "text", int() if knob.digits and not isinstance(raw, bool):
            return str(raw)
        case "words", list():
            return tuple(_word(entry) for entry in raw)
        case "mapping", dict():
            return {name: _word(word) for name, word in raw.items()}
        case _:
            needs, hint = _NEEDS.get(knob.kind, _NEEDS_TEXT)
            raise ValueError(f"it must be {needs}, got {_say_type(raw)}{hint}")


_NEEDS_TEXT: Final = ("text", "; put quotes around it")
_NEEDS: Final[Mapping[Kind, tuple[str, str]]] = {
    "switch": ("true or false", ""),
    "integer": ("a whole number", ""),
    "number": ("a number", ""),
    "words": ("a list", ""),
    "mapping": ("a section of names with a text each", ""),
}


def _object(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"it must be a JSON object, got {shown(text)}") from None


def _choice(knob: Knob, text: str) -> str:
    if text not in knob.choices:
        hint = did_you_mean(text, knob.choices)
        raise ValueError(f"it must be one of {', '.join(knob.choices)}, got {shown(text)}{hint}")
    return text


def _word(entry: object) -> str:
    if not isinstance(entry, str):
        raise ValueError(f"its entries must be text, got {_say_type(entry)}; put quotes around it")
    return entry


def _say_type(raw: object) -> str:
    if isinstance(raw, bool):
        return f"{str(raw).lower()} (YAML reads yes, no, on and off as booleans)"
    if isinstance(raw, int | float):
        return f"the number {shown(raw)}"
    if isinstance(raw, list | dict):
        return "a list" if isinstance(raw, list) else "a section"
    return "null" if raw is None else shown(str(raw))
