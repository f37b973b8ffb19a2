"""Route spec: one public name of a model, and the models at providers, or of own engines, that answer for it. Pure.

    claude-sonnet:
      targets:
        - anthropic-a/claude-sonnet-5                                        a provider's name, then the vendor's model
        - {to: bedrock-eu/eu.anthropic.claude-sonnet-5, weight: 3}
        - {to: vertex-b/claude-sonnet-5, on: [rate, full]}                   only after such failures of the others
        - engines/qwen3-235b                                                 a model of the cluster's own workers

How one of them is chosen, and what is laid over that, says `route_ways`.
"""

from typing import Any, Final

import msgspec

from smg_node.core.errors import invalid
from smg_node.core.json_cursor import Cursor, Problems
from smg_node.providers.routes.route_ways import (
    CHOICES,
    SPELLING,
    WEIGHTED,
    Shadow,
    Split,
    read_shadow,
    read_split,
    target_of,
    ways_value,
)

ENGINES: Final = "engines"
"""Stands for a provider's name where a target is a model of the cluster's own workers; no provider is called so."""
TARGETS_MAX: Final = 64
WEIGHT_MIN: Final = 0.05
WEIGHT_MAX: Final = 20.0
CLASSES: Final = ("rate", "full", "no_money", "not_let_in", "model_unknown", "broken", "timed_out")
"""Kinds of failure after which a target of `on` joins."""
NAME_MAX: Final = 2_304
"""A provider's name, a slash, and a vendor's name of a model: an ARN, for one."""
_KEYS: Final = ("targets", "choose", "split", "shadow")


class RouteTarget(msgspec.Struct, frozen=True):
    """One target: `model` of `provider`, or of the cluster's own workers. `on` is empty for one that is always there."""

    provider: str
    model: str
    weight: float = 1.0
    on: tuple[str, ...] = ()


class RouteSpec(msgspec.Struct, frozen=True):
    """One route. `choose` is the way among the targets that are there."""

    name: str
    targets: tuple[RouteTarget, ...]
    choose: str = WEIGHTED
    split: Split | None = None
    shadow: Shadow | None = None

    @property
    def providers(self) -> frozenset[str]:
        """Names of all providers that it needs."""
        named = [way.to for way in (self.split, self.shadow) if way is not None]
        return frozenset(
            (*(one.provider for one in self.targets), *(target_of(to)[0] for to in named))
        )


def read_route(name: str, said: object) -> RouteSpec:
    """Return the route that a definition says; INVALID_REQUEST names everything that is wrong, with its path."""
    if not isinstance(said, dict):
        raise invalid(f"a route is an object with `targets`, not {type(said).__name__}", "spec")
    problems = Problems(strict=True)
    cursor = Cursor(said, problems)
    cursor.only(_KEYS)
    rows = cursor.array("targets", required=True, at_least=1, at_most=TARGETS_MAX) or []
    targets = [_target(cursor, index, row) for index, row in enumerate(rows)]
    found = [target for target in targets if target is not None]
    seen: dict[tuple[str, str], int] = {}
    for index, target in enumerate(found):
        first = seen.setdefault((target.provider, target.model), index)
        if first != index:
            where = f"{target.provider}/{target.model}"
            cursor.problem("targets", f"{where} is target {first} already", index=index)
    if found and all(target.on for target in found):
        cursor.problem("targets", "at least one target must be there without `on`")
    choose = cursor.word("choose", CHOICES) or WEIGHTED
    split, shadow = read_split(cursor, found), read_shadow(cursor, ENGINES)
    problems.check()
    return RouteSpec(name, tuple(found), choose, split, shadow)


def route_value(route: RouteSpec) -> dict[str, Any]:
    """Return the definition of a route, as `read_route` takes it."""
    rows: list[dict[str, Any]] = []
    for target in route.targets:
        row: dict[str, Any] = {"to": f"{target.provider}/{target.model}"}
        if target.weight != 1.0:
            row["weight"] = target.weight
        if target.on:
            row["on"] = list(target.on)
        rows.append(row)
    return {"targets": rows, **ways_value(route.choose, route.split, route.shadow)}


def _target(cursor: Cursor, index: int, row: object) -> RouteTarget | None:
    if isinstance(row, str):
        provider, model = _split(row)
        if model:
            return RouteTarget(provider, model)
        cursor.problem("targets", SPELLING, index=index)
        return None
    inside = cursor.element("targets", index, row)
    if inside is None:
        return None
    inside.only(("to", "weight", "on"))
    to = inside.text("to", required=True)
    weight = inside.number("weight", low=WEIGHT_MIN, high=WEIGHT_MAX)
    on = inside.array("on", at_most=len(CLASSES)) or []
    for at, word in enumerate(on):
        if word not in CLASSES:
            inside.problem("on", f"must be one of {', '.join(CLASSES)}", index=at)
    if to is None:
        return None
    provider, model = _split(to)
    if not model:
        inside.problem("to", SPELLING)
        return None
    return RouteTarget(provider, model, 1.0 if weight is None else float(weight), tuple(on))


def _split(text: str) -> tuple[str, str]:
    provider, _, model = text.partition("/")
    return (provider, model) if provider and model and len(text) <= NAME_MAX else ("", "")
