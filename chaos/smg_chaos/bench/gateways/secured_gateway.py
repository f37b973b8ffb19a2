"""Secured gateway: this gateway as in production, with API keys required and limits on every key.

The limits are far above any load, so that all they do is cost: requests and tokens in windows, and
what is open at a time. Metrics and the access log are on by default.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final, Protocol

from smg_chaos.bench.children import BenchError, fetch

ADMIN_KEY: Final = "smg-benchadmin-" + "0123456789abcdefghijklmnopqrstuvwxyz0123456"
"""No secret: it opens a gateway on the loopback interface, for as long as it is measured."""
TENANT: Final = "bench"
_MUCH: Final = 1_000_000_000_000
"""No run comes near: long prompts use up a thousandth of it, of tokens, in ten minutes."""
_LISTENS_S: Final = 60.0
_RETRY_S: Final = 0.1


class Listening(Protocol):
    """Address of a gateway that listens, or will."""

    @property
    def label(self) -> str:
        """Its name in tables."""
        ...

    @property
    def host(self) -> str:
        """Its listen address."""
        ...

    @property
    def port(self) -> int:
        """Its listen port."""
        ...

    def died(self) -> str:
        """Return a description of its end, or nothing while it runs."""
        ...


async def equip(gateway: Listening, clock_s: Callable[[], float]) -> str:
    """Set limits, make a key, and return it; BenchError if the gateway takes neither."""
    end_s = clock_s() + _LISTENS_S
    limits = {
        "amounts": [
            {"unit": "requests", "amount": _MUCH, "window": "day"},
            {"unit": "tokens", "amount": _MUCH, "window": "day"},
        ],
        "concurrency": 100_000,
    }
    while True:
        try:
            await _send(gateway, "PUT", f"/v1/cluster/limits/tenant={TENANT}", limits)
            break
        except OSError as error:
            if said := gateway.died():
                raise BenchError(said) from error
            if clock_s() > end_s:
                raise BenchError(f"{gateway.label} does not listen: {error}") from error
            await asyncio.sleep(_RETRY_S)
    made = await _send(gateway, "POST", "/v1/cluster/keys", {"tenant": TENANT, "role": "user"})
    return str(made["key"])


async def _send(gateway: Listening, method: str, path: str, wish: dict[str, Any]) -> dict[str, Any]:
    body = json.dumps(wish).encode()
    headers = {"authorization": f"Bearer {ADMIN_KEY}", "if-match": "*"}
    status, answer = await fetch(gateway.host, gateway.port, method, path, body, headers=headers)
    if status not in (200, 201):
        raise BenchError(f"{gateway.label}: {method} {path}: status {status}: {answer[:300]!r}")
    answered: dict[str, Any] = json.loads(answer)
    return answered
