"""Usage routes: sums of usage, of all tenants for operators, of its own for a tenant."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from smg_node.access.identity import missing_key
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.ports.usage import (
    ASPECTS,
    Amounts,
    Aspect,
    UsageQuery,
    UsageRow,
    UsageService,
    UsageSums,
)
from smg_node.http.query_bounds import USAGE_NAME_CHARACTERS_MAX, USAGE_SPAN_PATTERN

HOUR_MS: Final = 3_600_000
DEFAULT_HOURS: Final = 24
_SPAN: Final = re.compile(USAGE_SPAN_PATTERN, re.ASCII)
_SPAN_MS: Final[Mapping[str, int]] = {"m": 60_000, "h": HOUR_MS, "d": 24 * HOUR_MS}
_TIME_CHARACTERS_MAX: Final = 40
OWN_ASPECTS: Final[Sequence[Aspect]] = tuple(one for one in ASPECTS if one != "provider")
"""A tenant does not see whose models answer it."""
_LAST_MS: Final = int(datetime(9999, 12, 31, 22, tzinfo=UTC).timestamp()) * 1000
"""Rounded up to the next hour, this is still a time."""


class UsageRoutes:
    """Serves usage."""

    def __init__(self, node: str, desk: UsageService, now_ms: Callable[[], int]) -> None:
        self._node = node
        self._desk = desk
        self._now_ms = now_ms

    async def usage(self, request: HttpRequest) -> Reply:
        """Sum up the usage of all tenants."""
        tenant = _name(request, "tenant")
        return await self._sums(
            request, tenant, default="tenant,model", provider=_name(request, "provider")
        )

    async def own(self, request: HttpRequest) -> Reply:
        """Sum up the usage of the calling key's tenant; UNAUTHENTICATED or FORBIDDEN for a key
        without one.
        """
        identity = request.identity
        if not identity.key_id:
            raise missing_key()
        if not identity.tenant:
            raise SmgError(ErrorKind.FORBIDDEN, "this key belongs to no tenant")
        return await self._sums(request, identity.tenant, default="model", known=OWN_ASPECTS)

    async def _sums(
        self,
        request: HttpRequest,
        tenant: str | None,
        *,
        default: str,
        provider: str | None = None,
        known: Sequence[Aspect] = ASPECTS,
    ) -> Reply:
        first, end = self._hours(request)
        wish = UsageQuery(
            first=first,
            end=end,
            by=_aspects(request.query.get("by", default), known),
            tenant=tenant,
            key=_name(request, "key"),
            model=_name(request, "model"),
            provider=provider,
            tool=_name(request, "tool"),
            server=_name(request, "server"),
        )
        sums = await self._desk.usage(wish)
        return json_reply(_shown(self._node, wish.by, sums))

    def _hours(self, request: HttpRequest) -> tuple[int, int]:
        """Return the requested hours: whole ones, a day of them by default."""
        now_ms = self._now_ms()
        end = -(-_moment(request, "to", now_ms, now_ms) // HOUR_MS)
        first = _moment(request, "from", now_ms, (end - DEFAULT_HOURS) * HOUR_MS) // HOUR_MS
        # What begins after its end has no hours, and sums of nothing.
        return first, max(first, end)


def _name(request: HttpRequest, key: str) -> str | None:
    said = request.query.get(key, "")
    if len(said) > USAGE_NAME_CHARACTERS_MAX:
        raise invalid(f"{key} has at most {USAGE_NAME_CHARACTERS_MAX} characters", key)
    return said or None


def _aspects(said: str, known: Sequence[Aspect]) -> Sequence[Aspect]:
    words = {word.strip() for word in said[:USAGE_NAME_CHARACTERS_MAX].split(",")}
    if strange := sorted(words.difference(known)):
        listed = ", ".join(known)
        raise invalid(f"by has {strange[0][:64]!r} in it; it may have {listed}", "by")
    return [aspect for aspect in known if aspect in words]


def _moment(request: HttpRequest, key: str, now_ms: int, default: int) -> int:
    """Return a moment of the query, in Unix milliseconds: `24h` ago, or a date or a time, of UTC unless it says."""
    said = request.query.get(key)
    if said is None:
        return default
    span = _SPAN.fullmatch(said)
    if span is not None:
        return max(0, now_ms - int(span[1]) * _SPAN_MS[span[2]])
    try:
        moment = datetime.fromisoformat(said[:_TIME_CHARACTERS_MAX])
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return min(max(0, int(zoned.timestamp() * 1000)), _LAST_MS)
    except (ValueError, OverflowError):
        raise invalid(
            f"{key} must be a span such as 24h or 7d, or a time such as 2026-11-22T03:00Z", key
        ) from None


def _shown(node: str, by: Sequence[Aspect], sums: UsageSums) -> Mapping[str, Any]:
    return {
        "node": node,
        "from": _say_hour(sums.first),
        "to": _say_hour(sums.end),
        "by": by,
        "rows": [{**_names(row, by), **_counts(row.used)} for row in sums.rows],
        "total": _counts(sums.total),
        "exact": sums.exact,
        "cut": sums.cut,
        "silent": sums.silent,
    }


def _names(row: UsageRow, by: Sequence[Aspect]) -> Mapping[str, Any]:
    hour = None if row.hour is None else _say_hour(row.hour)
    said: Mapping[Aspect, Any] = {
        "hour": hour,
        "day": None if hour is None else hour[:10],
        "tenant": row.tenant,
        "key": row.key,
        "model": row.model,
        "provider": row.provider,
        "server": row.server,
        "tool": row.tool,
    }
    return {aspect: said[aspect] for aspect in by}


def _counts(used: Amounts) -> Mapping[str, int]:
    return {
        "requests": used.requests,
        "refused": used.refused,
        "prompt_tokens": used.prompt_tokens,
        "cached_tokens": used.cached_tokens,
        "completion_tokens": used.completion_tokens,
        "cost_micro": used.cost_micro,
        "cache_write_tokens": used.cache_write_tokens,
        "calls": used.calls,
        "unpriced_calls": used.unpriced_calls,
        "estimated_calls": used.estimated_calls,
        "tool_runs": used.tool_runs,
        "failed_tool_runs": used.failed_tool_runs,
        "tool_ms": used.tool_ms,
        "tool_bytes": used.tool_bytes,
    }


def _say_hour(hour: int) -> str:
    return datetime.fromtimestamp(hour * 3_600, UTC).strftime("%Y-%m-%dT%H:%MZ")
