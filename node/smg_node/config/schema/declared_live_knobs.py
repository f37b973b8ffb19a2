"""Declared live knobs: the settings that may be changed while running, as the settings tree declares them.

Only the process that reads the configuration has the declarations; it hands these on with its settings.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from smg_node.config.schema.knob import ANY_NAME, Knob, Schema
from smg_node.config.schema.live_keys import LIVE
from smg_node.config.schema.live_settings import MODELS, NEEDS, LiveKnob


def live_knobs(root: type[BaseModel]) -> tuple[LiveKnob, ...]:
    """Return the knobs of `LIVE` as `root`, the tree of settings, declares them."""
    schema = Schema(root)
    found = []
    for key in LIVE:
        path = path_of(key)
        knob = schema.at(path)
        assert isinstance(knob, Knob), key
        kind: Any = knob.kind
        assert kind in NEEDS, key
        field = _field(root, path)
        most = next(
            (mark.max_length for mark in field.metadata if hasattr(mark, "max_length")), None
        )
        found.append(
            LiveKnob(
                key=key,
                kind=kind,
                default=field.default,
                low=knob.low,
                high=knob.high,
                choices=knob.choices,
                most=most,
                says=knob.says,
                why=knob.why,
                bounds=knob.bounds,
            )
        )
    return tuple(found)


def path_of(key: str) -> tuple[str, ...]:
    """Return the path of a key of `LIVE` in the tree."""
    if not key.startswith(MODELS):
        return tuple(key.split("."))
    head, name, field = key.split("/")
    return head, name, *field.split(".")


def _field(root: type[BaseModel], path: Sequence[str]) -> Any:
    model: Any = root
    for part in path[:-1]:
        if part == ANY_NAME:
            continue
        annotation = model.model_fields[part].annotation
        arguments = getattr(annotation, "__args__", ())
        model = arguments[1] if arguments else annotation
    return model.model_fields[path[-1]]
