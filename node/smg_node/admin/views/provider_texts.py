"""Provider texts: providers, routes and explained requests as rows and facts for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from smg_node.admin.views.output import draw_facts, draw_table, format_span
from smg_node.admin.views.value_text import format_time, format_value

PROVIDER_COLUMNS: Final = ("NAME", "KIND", "AT", "KEYS", "MODELS", "FROM", "VERSION", "NOTE")
ROUTE_COLUMNS: Final = ("ROUTE", "TARGET", "WEIGHT", "ON", "STATE", "WHY", "FROM", "VERSION")
_LIMIT_COLUMNS: Final = ("KEY", "LIMIT", "OF", "LEFT", "FULL IN", "TOLD", "OTHERS WANT")
_TARGET_COLUMNS: Final = ("CLIENTS ASK FOR", "TARGET", "WEIGHT", "ON", "STATE", "FOR", "WHY")
_SHADOW_COLUMNS: Final = (
    "REQUEST",
    "TOKENS",
    "TOOK MS",
    "FIRST MS",
    "FINISH",
    "CALLS",
    "LENGTH",
    "ERROR",
)
_PLACES: Final = ("base", "region", "location", "resource")
_READY: Final = "ready"
_PENDING: Final = "pending"


def provider_row(view: Mapping[str, Any]) -> Sequence[object]:
    """Return the row of a provider in a list."""
    spec, keys, targets = view["spec"], view["keys"], view["targets"]
    resting = sum(bool(key["resting_ms"]) for key in keys)
    ready = sum(target["state"] == _READY for target in targets)
    at = next((spec[name] for name in _PLACES if spec.get(name)), "")
    shown = str(len(keys)) if not resting else f"{len(keys)}, {resting} resting"
    if not keys:
        shown = str(_way_in(spec))
    return (
        view["name"],
        view["kind"],
        at,
        shown,
        f"{ready} of {len(targets)} ready" if targets else "",
        _source(view),
        view["version"],
        view["trouble"],
    )


def draw_provider(view: Mapping[str, Any]) -> str:
    """Return a provider as facts, its keys and its targets below."""
    spec = view["spec"]
    facts: list[tuple[str, object]] = [("name", view["name"])]
    facts += [
        (key, value if isinstance(value, dict) else format_value(value))
        for key, value in sorted(spec.items(), key=lambda item: item[0] != "kind")
        if key != "models"
    ]
    facts += [("defined by", _source(view)), ("version", view["version"])]
    if view["time_ms"]:
        facts.append(("since", format_time(view["time_ms"])))
    if view["trouble"]:
        facts.append(("trouble", view["trouble"]))
    parts = [draw_facts(facts), draw_table(("KEY", "RESTS FOR", "WHY"), _keys(view), empty="")]
    parts.append(draw_table(_LIMIT_COLUMNS, _limits(view), empty=""))
    parts.append(draw_targets(view["targets"]))
    return "\n\n".join(part for part in parts if part)


def draw_targets(targets: Sequence[Mapping[str, Any]]) -> str:
    """Return targets as a table."""
    return draw_table(
        _TARGET_COLUMNS,
        (
            (
                one["model"],
                one["to"],
                one["weight"],
                _joins(one),
                one["state"],
                _span(one["off_ms"]),
                one["reason"],
            )
            for one in targets
        ),
        empty="No model of it is asked for yet.",
    )


def route_rows(view: Mapping[str, Any]) -> Iterator[Sequence[object]]:
    """Yield the rows of a route, one for each target."""
    for one in view["targets"]:
        on, why = _joins(one), one["reason"]
        tail = (_source(view), view["version"])
        yield (view["name"], one["to"], one["weight"], on, one["state"], why, *tail)


def draw_route(view: Mapping[str, Any]) -> str:
    """Return a route as facts, its targets below."""
    facts: list[tuple[str, object]] = [
        ("name", view["name"]),
        ("choose", view["spec"].get("choose", "weighted")),
    ]
    facts += [(way, view["spec"][way]) for way in ("split", "shadow") if way in view["spec"]]
    facts += [("defined by", _source(view)), ("version", view["version"])]
    if view["time_ms"]:
        facts.append(("since", format_time(view["time_ms"])))
    return f"{draw_facts(facts)}\n\n{draw_targets(view['targets'])}"


def draw_shadows(told: Mapping[str, Any]) -> str:
    """Return what became of the copies of a route's requests."""
    facts: list[tuple[str, object]] = [("name", told["name"]), *told["outcomes"].items()]
    if told["calls_equal"] or told["calls_different"]:
        facts.append(("calls", f"{told['calls_equal']} equal, {told['calls_different']} different"))
    rows = (_shadow_row(one) for one in told["records"])
    table = draw_table(_SHADOW_COLUMNS, rows, empty="No request of it was copied here yet.")
    return f"{draw_facts(facts)}\n\n{table}"


def _shadow_row(one: Mapping[str, Any]) -> Sequence[object]:
    ours, copy, ratio = one["answer"], one["copy"], one["length_ratio"]
    equal = {None: "", True: "equal", False: "different"}[one["calls_equal"]]
    return (
        one["request_id"],
        _pair(ours, copy, "completion_tokens"),
        _pair(ours, copy, "took_ms"),
        _pair(ours, copy, "first_ms"),
        _pair(ours, copy, "finish"),
        equal,
        "" if ratio is None else f"{ratio:.2f}",
        one["error"],
    )


def _pair(ours: Mapping[str, Any], copy: Mapping[str, Any] | None, name: str) -> str:
    theirs = "-" if copy is None or copy[name] is None else copy[name]
    return f"{'-' if ours[name] is None else ours[name]} / {theirs}"


def draw_explained(told: Mapping[str, Any]) -> str:
    """Return how each target is asked, and what it would lose of the request that was explained."""
    parts = []
    for one in told["targets"]:
        target = one["target"]
        head = f"{target['to']}: {target['state']}"
        if target["reason"]:
            head += f", {target['reason']}"
        ways = draw_table(
            ("CLIENT", "ASKED IN", "HOW"),
            ((api, way["api"], way["way"]) for api, way in one["apis"].items()),
            empty="It is not known how it is asked.",
        )
        parts.append("\n".join([head, ways, *_lost(one, told["api"])]))
    return "\n\n".join(parts)


def troubles(targets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each target that will not serve as it is."""
    for one in targets:
        if one["state"] not in (_READY, _PENDING):
            yield f"{one['to']} is {one['state']}: {one['reason']}"


def _lost(one: Mapping[str, Any], api: str) -> Iterator[str]:
    """Yield what is lost of a request of that API, "" if none was explained."""
    if not api or api not in one["apis"]:
        return
    refused = one["refused"]
    if refused is not None:
        where = f"{refused['where']}: " if refused["where"] else ""
        said = refused["message"].removeprefix(where)
        yield f"refuses the request: {where}{said}"
    elif one["ignored"]:
        yield f"ignores: {', '.join(one['ignored'])}"
    elif one["apis"][api]["way"] == "native":
        yield "takes the request as it is"
    elif one["apis"][api]["way"] == "generated":
        yield "what the model's engines cannot do is refused when they are asked"
    else:
        yield "takes all of the request"


def _joins(one: Mapping[str, Any]) -> str:
    """Return when a target joins: always (""), after failures, or for a split or a shadow only."""
    only = one.get("only")  # nodes of an earlier release say none
    return f"for {' and '.join(only)}" if only else "+".join(one["on"])


def _keys(view: Mapping[str, Any]) -> Iterator[Sequence[object]]:
    for key in view["keys"]:
        yield key["reference"], _span(key["resting_ms"] or None), key["why"]
    for name, reference in view["secrets"].items():
        yield f"{name}: {reference}", None, ""


def _limits(view: Mapping[str, Any]) -> Iterator[Sequence[object]]:
    for one in view["limits"]:
        yield (
            one["key"],
            one["what"],
            one["limit"],
            one["left"],
            _span(one["full_ms"]),
            f"{format_span(one['told_ms'] / 1000)} ago",
            f"{one['wanted']:g}/s" if one["wanted"] else "",
        )


def _way_in(spec: Mapping[str, Any]) -> object:
    said = spec.get("credentials", "")
    return said.get("kind", "") if isinstance(said, dict) else said


def _source(view: Mapping[str, Any]) -> str:
    return "this node's file" if view["source"] == "node" else f"cluster, on {view['owner']}"


def _span(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else format_span(milliseconds / 1000)
