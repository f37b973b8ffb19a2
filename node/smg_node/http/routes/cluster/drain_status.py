"""Drain status route: the progress of a member's drain, polled by `cluster drain --wait`."""

from collections.abc import Sequence
from typing import Any

from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.ports.drain import DrainService, DrainView, Prober


class DrainRoutes:
    """Serves a member's drain status."""

    def __init__(self, desk: DrainService) -> None:
        self._desk = desk

    async def draining(self, request: HttpRequest) -> Reply:
        """Show the drain status of that member, as it reports it."""
        return json_reply(_shown(await self._desk.draining(request.values["name"])))


def _shown(view: DrainView) -> dict[str, Any]:
    work, cut_left_s = view.work, view.work.cut_left_s
    return {
        "name": view.name,
        "boot": view.boot,
        "stage": view.stage,
        "open": work.left,
        "requests": work.requests,
        "streams": work.streams,
        "background": work.background,
        "settle_left_s": round(work.settle_left_s, 3),
        "cut_left_s": None if cut_left_s is None else round(cut_left_s, 3),
        "patience_s": round(view.patience_s, 3),
        "duties": {
            "limits": view.duties.limits,
            "workers": view.duties.workers,
            "spooled": view.duties.spooled,
        },
        "probers": _probers(work.probers),
        "silent_processes": list(work.silent),
    }


def _probers(probers: Sequence[Prober]) -> list[dict[str, Any]]:
    return [
        {
            "address": one.address,
            "agent": one.agent,
            "ago_s": round(one.ago_s, 3),
            "told_ready": one.ready,
        }
        for one in probers
    ]
