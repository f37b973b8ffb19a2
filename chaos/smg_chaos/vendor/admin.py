"""Admin routes of a stand-in, below `/_vendor`: its requests, bill, faults, keys, limits, cache and access tokens."""

from collections.abc import Callable
from typing import Annotated, Any, Final
from urllib.parse import parse_qs

import msgspec

from smg_chaos.vendor.access.sigv4 import SignedRequest
from smg_chaos.vendor.reply import Reply, json_reply
from smg_chaos.vendor.vendor import Times, Vendor

PREFIX: Final = "/_vendor"


class _Keys(msgspec.Struct):
    add: list[str] = []
    remove: list[str] = []


class _Faults(msgspec.Struct):
    faults: list[str] = []


class _Limits(msgspec.Struct):
    requests_per_minute: Annotated[int, msgspec.Meta(ge=0)] = 0
    tokens_per_minute: Annotated[int, msgspec.Meta(ge=0)] = 0
    filled: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0


class Admin:
    """The routes of one stand-in. They need no credential."""

    def __init__(self, vendor: Vendor) -> None:
        self._vendor = vendor
        self._routes: dict[tuple[str, str], Callable[[SignedRequest, Times], Reply]] = {
            ("GET", "/requests"): self._requests,
            ("GET", "/bill"): self._bill,
            ("GET", "/faults"): self._faults,
            ("PUT", "/faults"): self._set_faults,
            ("GET", "/keys"): self._keys,
            ("POST", "/keys"): self._change_keys,
            ("GET", "/limits"): self._limits,
            ("PUT", "/limits"): self._set_limits,
            ("GET", "/cache"): self._cache,
            ("DELETE", "/cache"): self._clear_cache,
            ("POST", "/token"): self._token,
            ("POST", "/reset"): self._reset,
        }

    def answer(self, request: SignedRequest, times: Times) -> Reply:
        """Return the reply."""
        route = self._routes.get((request.method, request.raw_path.removeprefix(PREFIX)))
        if route is None:
            known = [f"{method} {PREFIX}{path}" for method, path in self._routes]
            return json_reply({"error": "no such route", "routes": known}, 404)
        try:
            return route(request, times)
        except (msgspec.MsgspecError, ValueError) as error:
            return json_reply({"error": str(error)}, 400)

    def _requests(self, request: SignedRequest, times: Times) -> Reply:
        asked = parse_qs(request.raw_query).get("last", ["256"])[0]
        if not asked.isdecimal():
            raise ValueError(f"last={asked}: give a number of requests")
        return json_reply(self._vendor.log.told(int(asked)))

    def _bill(self, request: SignedRequest, times: Times) -> Reply:
        return json_reply(self._vendor.bill.told())

    def _faults(self, request: SignedRequest, times: Times) -> Reply:
        return json_reply(self._vendor.faults.told())

    def _set_faults(self, request: SignedRequest, times: Times) -> Reply:
        self._vendor.faults.set(msgspec.json.decode(request.body, type=_Faults).faults)
        return json_reply(self._vendor.faults.told())

    def _keys(self, request: SignedRequest, times: Times) -> Reply:
        return json_reply(self._vendor.credentials.names)

    def _change_keys(self, request: SignedRequest, times: Times) -> Reply:
        change = msgspec.json.decode(request.body, type=_Keys)
        for key in change.add:
            self._vendor.credentials.add(key)
        for key in change.remove:
            self._vendor.credentials.remove(key)
        return json_reply(self._vendor.credentials.names)

    def _limits(self, request: SignedRequest, times: Times) -> Reply:
        """Tell how many requests the limits let in and refused since they were set."""
        rates = self._vendor.rates
        return json_reply({"let_in": rates.let_in, "refused": rates.refused})

    def _set_limits(self, request: SignedRequest, times: Times) -> Reply:
        limits = msgspec.json.decode(request.body, type=_Limits)
        rates = self._vendor.rates
        rates.set(limits.requests_per_minute, limits.tokens_per_minute, limits.filled)
        return json_reply(msgspec.to_builtins(limits))

    def _cache(self, request: SignedRequest, times: Times) -> Reply:
        return json_reply({"entries": len(self._vendor.cache)})

    def _clear_cache(self, request: SignedRequest, times: Times) -> Reply:
        self._vendor.cache.clear()
        return self._cache(request, times)

    def _token(self, request: SignedRequest, times: Times) -> Reply:
        status, answer = self._vendor.tokens.answer(request.body, times.wall_s)
        return json_reply(answer, status)

    def _reset(self, request: SignedRequest, times: Times) -> Reply:
        """Forget requests, the bill and the cache."""
        vendor: Any = self._vendor
        for part in (vendor.log, vendor.bill, vendor.cache):
            part.clear()
        return json_reply({})
