"""Probes: liveness, readiness and health routes for orchestrators and load balancers."""

import asyncio
from contextlib import aclosing
from typing import Any, Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Collector
from smg_node.core.generation.request import GenerateRequest, Sampling, TextPrompt
from smg_node.core.request_context import RequestContext
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.drain_phases import Drain
from smg_node.http.middleware.readiness_probers import Probers
from smg_node.http.ports.node import Health
from smg_node.http.routes.inference.answer_headers import close_events
from smg_node.pipeline.relay.relay_request import APIS, relayable

_GENERATE_BUDGET_S: Final = 5.0
_GENERATE_FRESH_S: Final = 10.0
_MODELS_AT_ONCE_MAX: Final = 64


class ProbeRoutes:
    """Answers probes; none of them calls a worker but `/health_generate`."""

    def __init__(self, parts: HttpParts, drain: Drain, probers: Probers) -> None:
        self._parts = parts
        self._probers = probers
        self._drain = drain
        self._one_at_a_time = asyncio.Lock()
        self._generated: Reply | None = None
        self._generated_s = 0.0

    async def liveness(self, request: HttpRequest) -> Reply:
        """Answer 200: that the process answers is the result."""
        return json_reply({"status": "alive"})

    async def readiness(self, request: HttpRequest) -> Reply:
        """Tell whether this node should get work."""
        health = self._parts.health.health()
        reasons = list(health.reasons)
        if self._drain.draining and not health.draining:
            reasons.append("the node is draining")
        ready = health.ready and not health.draining and not self._drain.draining
        agent, now_s = request.headers.get("user-agent", ""), self._parts.clock.monotonic_s()
        self._probers.note(request.peer, agent, now_s, ready=ready)
        return _probe(health, "ready" if ready else "not ready", reasons, well=ready)

    async def health(self, request: HttpRequest) -> Reply:
        """Tell whether the node lives and any worker is ready."""
        health = self._parts.health.health()
        well = health.live and health.workers_ready > 0
        return _probe(health, "healthy" if well else "unhealthy", list(health.reasons), well=well)

    async def health_generate(self, request: HttpRequest) -> Reply:
        """Generate one token with every model, within 5 s; an answer is cached for 10 s."""
        async with self._one_at_a_time:
            now_s = self._parts.clock.monotonic_s()
            if self._generated is None or now_s - self._generated_s > _GENERATE_FRESH_S:
                self._generated = await self._generate_all(request)
                self._generated_s = self._parts.clock.monotonic_s()
            return self._generated

    async def _generate_all(self, request: HttpRequest) -> Reply:
        names = [model.id for model in self._parts.catalog.models()][:_MODELS_AT_ONCE_MAX]
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._generate(request, name)) for name in names]
        results = dict(zip(names, (task.result() for task in running), strict=True))
        well = bool(results) and all(result == "ok" for result in results.values())
        return json_reply({"healthy": well, "models": results}, 200 if well else 503)

    async def _generate(self, request: HttpRequest, model: str) -> str:
        if self._parts.relays.only(model):
            return await self._relay(request, model)
        wish = GenerateRequest(
            model=model,
            prompts=(TextPrompt("Hi"),),
            sampling=Sampling(max_tokens=1, temperature=0.0),
            stream=False,
        )
        events = self._parts.generations.start("probe", wish, self._context(request)).events()
        collector = Collector(wish.choices)
        try:
            async with asyncio.timeout(_GENERATE_BUDGET_S):
                async for batch in events:
                    collector.feed(batch)
            collector.answer()
        except TimeoutError:
            return f"no token within {_GENERATE_BUDGET_S:g} s"
        except SmgError as error:
            return error.message
        finally:
            await close_events(events)
        return "ok"

    async def _relay(self, request: HttpRequest, model: str) -> str:
        """Have an HTTP worker generate a token; one that refuses (it may only embed) counts as
        healthy.
        """
        body = {"model": model, "prompt": "Hi", "max_tokens": 1}
        asked = relayable(APIS["completions"], msgspec.json.encode(body), body)
        run = self._parts.relays.start(asked, {}, self._context(request), "")
        try:
            async with asyncio.timeout(_GENERATE_BUDGET_S), aclosing(run.answer()) as pieces:
                async for _ in pieces:
                    pass
        except TimeoutError:
            return f"no token within {_GENERATE_BUDGET_S:g} s"
        except SmgError as error:
            refused = error.kind in (ErrorKind.INVALID_REQUEST, ErrorKind.TOO_LARGE)
            return "ok" if refused or error.status == 501 else error.message
        return "ok"

    def _context(self, request: HttpRequest) -> RequestContext:
        now_s = self._parts.clock.monotonic_s()
        return RequestContext(
            request_id=request.request_id,
            received_s=now_s,
            deadline_s=now_s + _GENERATE_BUDGET_S,
            priority="system",
        )


def _probe(health: Health, status: str, reasons: list[str], *, well: bool) -> Reply:
    body: dict[str, Any] = {
        "status": status,
        "healthy_workers": health.workers_ready,
        "total_workers": health.workers_total,
        "reasons": reasons,
    }
    if health.degraded:
        body["degraded"] = list(health.degraded)
    return json_reply(body, 200 if well else 503)
