"""Explain route: the journeys of one request: candidates, decisions, calls and their results."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.outcome import Bill
from smg_node.core.journey import Broke, Chosen, Journey
from smg_node.core.prices.price import PICO_PER_MICRO
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.ports.node import Explained, Explainer, Workers


class ExplainRoutes:
    """Serves the journeys of requests."""

    def __init__(self, explainer: Explainer, workers: Workers) -> None:
        self._explainer = explainer
        self._workers = workers

    async def explain(self, request: HttpRequest) -> Reply:
        """Show all journeys of one request; `?node=` names the only member to ask."""
        node = request.query.get("node", "")
        told = await self._explainer.explain(request.values["id"], node=node)
        return json_reply(
            {
                "request_id": told.wanted,
                "node": told.node,
                "journeys": [_journey(journey) for journey in told.journeys],
                "workers": self._urls(told),
                "members": told.silent,
            }
        )

    def _urls(self, told: Explained) -> Mapping[str, str]:
        """Return the URLs of the workers that are named and still known here."""
        named: dict[str, None] = {}
        for journey in told.journeys:
            named |= dict.fromkeys(worker for worker, _ in journey.unplaced)
            for step in journey.steps:
                named[step.worker] = None
                if isinstance(step, Chosen):
                    named |= dict.fromkeys(one.worker for one in step.rated)
                    named |= dict.fromkeys(worker for worker, _ in step.dropped)
        urls = {}
        for worker in sorted(named):
            try:
                urls[worker] = self._workers.worker(worker).url
            except SmgError:
                continue
        return urls


def _journey(journey: Journey) -> Mapping[str, Any]:
    # Workers that share a call were chosen for one attempt.
    shared = ("prefill", "encode")
    calls = [step for step in journey.steps if isinstance(step, Chosen) and step.role not in shared]
    return {
        **msgspec.structs.asdict(journey),
        "under_way": journey.ended_ms is None,
        "attempts": len(calls),
        "continuations": sum(step.why == "continue" for step in calls),
        "steps": [_step(step) for step in journey.steps],
        "unplaced": _dropped(journey.unplaced),
        "bills": [_bill(one) for one in journey.bills],
        "runs": [msgspec.structs.asdict(one) for one in journey.runs],
        "pictures": [msgspec.structs.asdict(one) for one in journey.pictures],
        "processor": [
            {"name": name, "value": value, "origin": origin}
            for name, value, origin in journey.processor
        ],
    }


def _bill(bill: Bill) -> Mapping[str, Any]:
    used, pico = bill.used, bill.cost_pico
    return {
        "provider": bill.provider,
        "model": bill.model,
        "prompt_tokens": used.prompt_tokens,
        "cached_tokens": used.cached_tokens,
        "cache_write_tokens": used.cache_write_tokens,
        "completion_tokens": used.completion_tokens,
        "service_tier": used.service_tier,
        "cost_micro": None if pico is None else pico / PICO_PER_MICRO,
        "estimated": bill.estimated,
    }


def _step(step: Chosen | Broke) -> Mapping[str, Any]:
    if isinstance(step, Broke):
        return {"step": "broke", **msgspec.structs.asdict(step)}
    return {
        "step": "chosen",
        **msgspec.structs.asdict(step),
        "rated": [msgspec.structs.asdict(one) for one in step.rated],
        "dropped": _dropped(step.dropped),
    }


def _dropped(dropped: Sequence[tuple[str, str]]) -> Sequence[Mapping[str, str]]:
    return [{"worker": worker, "reason": reason} for worker, reason in dropped]
