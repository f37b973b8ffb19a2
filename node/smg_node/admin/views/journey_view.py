"""Journey view: a request's journey as text, in the order of time, with the reasons in words.

Where a policy computes costs, the candidates stand in a table and one sentence says what decided; where it
does not, the sentence says by which rule it chooses instead.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_node.admin.views.output import draw_facts, draw_table, format_span
from smg_node.admin.views.value_text import format_time
from smg_node.config.schema.problems import printable
from smg_node.routing.policy import CHOICE

_INDENT: Final = " " * 10
_ENDS: Final = {
    "": "is under way",
    "ok": "complete",
    "client_gone": "the client went away",
    "refused": "refused",
    "failed": "failed",
}
_WHYS: Final = {
    "first": "chose",
    "another": "chose, for a further answer,",
    "retry": "tried again on",
    "continue": "continued on",
    "target": "was told to use",
}
_PARTS: Final = {
    "prefill": " to work the prompt off",
    "decode": " to draw the answer",
    "encode": " to encode a picture",
}
_COLUMNS: Final = ("", "WORKER", "COST", "WAITING", "CACHED", "URL")
_DOLLARS: Final = "DOLLARS"
"""A further column where a route weighs prices, before the address."""
_CHEAPEST: Final = f"{CHOICE}cheapest"
_PROBE: Final = "probe"
"""In place of a policy: a breaker that is half open lets one request through."""
_HALF_A_MS_S: Final = 0.0005


def draw_explained(told: Mapping[str, Any]) -> str:
    """Return all journeys of one request, and the nodes that did not answer."""
    journeys: Sequence[Mapping[str, Any]] = told["journeys"]
    parts = [_journey(journey, told["workers"]) for journey in journeys]
    if len(parts) > 1:
        parts.insert(0, f"This id has {len(parts)} journeys; the newest comes first.")
    if told["members"]:
        parts.append(
            "\n".join(
                f"{printable(name)} could not be asked: {printable(why)}"
                for name, why in sorted(told["members"].items())
            )
        )
    return "\n\n".join(parts)


def _journey(journey: Mapping[str, Any], urls: Mapping[str, str]) -> str:
    lines = [draw_facts(_facts(journey))]
    several = any(step["choice"] for step in journey["steps"])
    for step in journey["steps"]:
        lines.append("")
        lines += _step(step, journey, urls, several=several)
    if runs := journey.get("runs"):  # nodes of an earlier release say none
        lines += ["", *map(_run, runs)]
    if journey["unplaced"]:
        lines += ["", f"No worker could be had: {_dropped(journey['unplaced'])}."]
    if message := journey.get("message"):  # nodes of an earlier release say none
        lines += ["", f"It was refused: {printable(message)}"]
    if journey["more"]:
        lines += ["", f"{journey['more']} more steps were not kept."]
    return "\n".join(lines)


def _facts(journey: Mapping[str, Any]) -> list[tuple[str, object]]:
    answer = f", answer {journey['answer']}" if journey["answer"] else ""
    return [
        ("request", f"{journey['request_id']}{answer}"),
        ("model", f"{journey['model'] or '-'}, {journey['dialect']}, on node {journey['node']}"),
        ("began", format_time(journey["began_ms"])),
        ("end", _end(journey)),
        ("tokens", _tokens(journey)),
        ("calls", _calls(journey)),
        *(("billed", _bill(one)) for one in journey.get("bills", ())),
        *(("picture", _picture(one)) for one in journey.get("pictures", ())),
        *_processor(journey.get("processor", ())),
    ]


_MAKERS: Final = {
    "node": "made by this node, ",
    "kept": "made for an earlier request, ",
    "shared": "made for another request at the same time, ",
    "engine": "left to the engine, ",
}


def _picture(seen: Mapping[str, Any]) -> str:
    made = _MAKERS.get(seen.get("maker", ""), "")
    through = f" in {seen['transport']}" if seen.get("transport") == "shared memory" else ""
    sent = f"{made}as {seen['way']}{through} to {seen['worker']}"
    if not seen["family"]:
        return printable(f"{sent}, which knows how it is made")
    size, digest = f"{seen['width']} x {seen['height']}", seen["digest"][:12]
    return printable(
        f"{size}, {seen['tokens']} tokens by the rules of {seen['family']}, {digest}…, {sent}"
    )


def _processor(values: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return by which numbers pictures were made."""
    told = [
        printable(f"{one['name']} = {_listed(one['value'])} ({one['origin']})") for one in values
    ]
    return [("processor" if not at else "", each) for at, each in enumerate(told)]


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _bill(bill: Mapping[str, Any]) -> str:
    cost = bill["cost_micro"]
    said = "nobody knows what it costs" if cost is None else f"{cost / 1_000_000:.6f}"
    tier = f", {bill['service_tier']}" if bill["service_tier"] else ""
    counted = ", as far as it came" if bill["estimated"] else ""
    tokens = f"{bill['prompt_tokens']} + {bill['completion_tokens']} tokens"
    return printable(f"{said} by {bill['provider']}/{bill['model']}: {tokens}{tier}{counted}")


def _end(journey: Mapping[str, Any]) -> str:
    said = _ENDS.get(journey["kind"], str(journey["kind"]))
    if journey["ended_ms"] is None:
        return said
    code = f", {journey['code']}" if journey["code"] else ""
    took = _span((journey["ended_ms"] - journey["began_ms"]) / 1000)
    ttft_ms = journey["ttft_ms"]
    first = "" if ttft_ms is None else f"; the first token after {_span(ttft_ms / 1000)}"
    return f"{said} ({journey['status']}{code}) after {took}{first}"


def _tokens(journey: Mapping[str, Any]) -> str:
    if journey["ended_ms"] is None:
        return "-"
    said = f"{journey['prompt_tokens']} in the prompt, {journey['cached_tokens']} of them cached"
    said += f"; {journey['completion_tokens']} generated"
    ttft_ms, generated = journey["ttft_ms"], journey["completion_tokens"]
    if ttft_ms is None or generated < 2:
        return said
    rest_ms = journey["ended_ms"] - journey["began_ms"] - ttft_ms
    return f"{said}, {(generated - 1) * 1000 / max(1, rest_ms):.1f} a second"


def _calls(journey: Mapping[str, Any]) -> str:
    attempts, continuations = journey["attempts"], journey["continuations"]
    went_on = f", {continuations} of them to go on in the middle" if continuations else ""
    return f"{attempts}{went_on}"


# ── Steps ────────────────────────────────────────────────────────────────────


def _step(
    step: Mapping[str, Any], journey: Mapping[str, Any], urls: Mapping[str, str], *, several: bool
) -> list[str]:
    at = f"+{_span((step['at_ms'] - journey['began_ms']) / 1000)}"
    who = f"answer {step['choice']}: " if several else ""
    lines = _broke(step) if step["step"] == "broke" else _chosen(step, urls)
    first, *rest = lines
    return [f"{at:<{len(_INDENT) - 1}} {who}{first}", *(f"{_INDENT}{line}" for line in rest)]


def _run(run: Mapping[str, Any]) -> str:
    """Return in a line what became of a call of a tool."""
    took = f" after {_span(run['ms'] / 1000)}" if run["ms"] else ""
    tool = f"{run['server']}/{run['tool']}" if run["server"] else run["tool"]
    verdict = f"{run['verdict']} by {run['rule']}"
    return printable(f"tool {tool}: {verdict}; {run['outcome']}{took}")


def _broke(step: Mapping[str, Any]) -> list[str]:
    said = step["emitted"]
    after = f"after {said} tokens" if said else "before its first token"
    lines = [f"{step['worker']} broke off {after}: {step['message']} ({step['code']})"]
    then = [f"then: {step['then']}"] if step["then"] else []
    return [printable(line) for line in (*lines, *then)]


def _chosen(step: Mapping[str, Any], urls: Mapping[str, str]) -> list[str]:
    worker = step["worker"]
    url = f" ({urls[worker]})" if worker in urls else ""
    waited = (
        f" after waiting {_span(step['waited_ms'] / 1000)} for one" if step["waited_ms"] else ""
    )
    verb = _WHYS.get(step["why"], step["why"])
    part = _PARTS.get(step.get("role", ""), "")
    rank = step.get("rank")
    on_rank = f", rank {rank}" if rank is not None else ""
    head = f"{verb} {worker}{url}{on_rank}{part}{waited}, {step['prompt_tokens']} prompt tokens"
    lines = [printable(head), *_candidates(step, urls)]
    if step["dropped"]:
        lines.append(f"left out: {_dropped(step['dropped'])}")
    if note := step.get("note"):  # nodes of an earlier release say none
        lines.append(printable(f"{note}."))
    return [*lines, printable(_reason(step))]


def _dropped(rows: Sequence[Mapping[str, Any]]) -> str:
    return printable(", ".join(f"{row['worker']} ({row['reason']})" for row in rows))


def _candidates(step: Mapping[str, Any], urls: Mapping[str, str]) -> list[str]:
    rated = step["rated"]
    if not rated:
        return []
    priced = any(one.get("dollars") is not None for one in rated)  # earlier releases say none
    rows = [
        (
            ">" if one["worker"] == step["worker"] else " ",
            one["worker"],
            _cost(one["cost_s"]),
            _cost(one["wait_s"]),
            round(one["overlap"] or 0),
            *([_dollars(one.get("dollars"))] if priced else []),
            urls.get(one["worker"], ""),
        )
        for one in rated
    ]
    columns = (*_COLUMNS[:-1], _DOLLARS, _COLUMNS[-1]) if priced else _COLUMNS
    table = draw_table(columns, rows, empty="").splitlines()
    unseen = step["of"] - len(rated)
    return [*table, *([f"and {unseen} more that cost more"] if unseen > 0 else [])]


def _reason(step: Mapping[str, Any]) -> str:
    """Return in a sentence what decided."""
    if step["why"] == "target":
        return "The client named this worker; no other was considered."
    if step["policy"] == _PROBE:
        return "Nobody else was left: this request tries whether the worker is well again."
    if step["key"]:
        return (
            f"Its routing key decided ({step['policy']}): requests with one key meet on one worker."
        )
    if step["of"] == 1:
        return "It was the only candidate."
    if step["policy"].startswith(CHOICE) and not step["rated"]:
        word = step["policy"].removeprefix(CHOICE)
        return f"Its route says choose: {word}, among {step['of']} candidates."
    ours = next((one for one in step["rated"] if one["worker"] == step["worker"]), None)
    others = [one for one in step["rated"] if one is not ours and one["cost_s"] is not None]
    if step["policy"] == _CHEAPEST and ours is not None and ours.get("dollars") is not None:
        return _cheapest(ours, [one for one in step["rated"] if one is not ours])
    picked = f"{step['policy']} picked it among {step['of']} candidates"
    if ours is None and others:
        return f"{picked}, beyond the {len(others)} that cost least."
    if ours is None or ours["cost_s"] is None or not others:
        return f"{picked}; it computes no costs."
    return _comparison(ours, min(others, key=lambda one: float(one["cost_s"])), step["policy"])


def _cheapest(ours: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> str:
    priced = [one for one in others if one.get("dollars") is not None]
    if not priced:
        return "It is the only one with a known price."
    other = min(priced, key=lambda one: float(one["dollars"]))
    less = other["dollars"] - ours["dollars"]
    if less <= 0:
        return f"It costs no more dollars than {other['worker']}; of equals the soonest is taken."
    return f"It costs {_dollars(less)} dollars less than {other['worker']}."


def _comparison(ours: Mapping[str, Any], other: Mapping[str, Any], policy: str) -> str:
    more_s = ours["cost_s"] - other["cost_s"]
    if more_s > _HALF_A_MS_S:
        return (
            f"{policy} took it although {other['worker']} costs {_cost(more_s)} less: near-equals are drawn,"
            " and a new beginning goes where all nodes would send it, so that they do not crowd one worker."
        )
    if more_s > -_HALF_A_MS_S:
        return f"It costs no more than {other['worker']}; {policy} draws among equals."
    why = _advantages(ours, other)
    return f"It costs {_cost(-more_s)} less than {other['worker']}{f': {why}' if why else ''}."


def _advantages(ours: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    cached = round((ours["overlap"] or 0) - (other["overlap"] or 0))
    waits_s = (ours["wait_s"] or 0) - (other["wait_s"] or 0)
    said = []
    if cached > 0:
        said.append(f"it has {cached} more tokens of the prompt in its cache")
    if waits_s < -_HALF_A_MS_S:
        said.append(f"its queue is {_cost(-waits_s)} shorter")
    but = []
    if cached < 0:
        but.append(f"it has {-cached} fewer tokens of the prompt in its cache")
    if waits_s > _HALF_A_MS_S:
        but.append(f"its queue is {_cost(waits_s)} longer")
    if said and but:
        return f"{' and '.join(said)}, though {' and '.join(but)}"
    return " and ".join(said)


def _dollars(dollars: float | None) -> str:
    return "-" if dollars is None else f"{dollars:.3g}" if dollars >= 1 else f"{dollars:.6f}"


def _cost(seconds: float | None) -> str:
    return "-" if seconds is None else _span(seconds)


def _span(seconds: float) -> str:
    """Return a span of time to three digits, or in two units from a minute on."""
    if seconds >= 60:
        return format_span(seconds)
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"
