"""Request split: the side of its route's split that one request is on, and the key that decided. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from smg_node.core.request_context import RequestContext
from smg_node.providers.routes.split_rule import Side, SplitRule, rule_of

_USERS: Final = ("user", "safety_identifier")
"""Fields in which clients name their user; Claude's clients do it in `metadata.user_id`."""


class RequestSplit:
    """Side of one request. `opening` returns the digest of how its conversation begins.

    What a request does not have (no tenant without keys, no user) is replaced by its conversation: it stays together,
    and shares hold.
    """

    def __init__(
        self,
        rule: SplitRule,
        route: str,
        context: RequestContext,
        routing_key: str,
        fields: Mapping[str, Any],
        opening: Callable[[], str],
        now_ms: int,
    ) -> None:
        self.name = rule.name
        self.by = rule.key
        """By what it was decided."""
        found = _key(rule.key, context, routing_key, fields)
        if not found:
            self.by = "conversation"
            found = routing_key or opening() or context.caller or context.client
        self.side: Side = rule.side(route, f"{self.by} {found}", now_ms)

    def told(self) -> str:
        """Return it in words."""
        return f"split {self.name}: {self.side}, by {self.by}" if self.side else ""


def split_of(
    label: str,
    route: str,
    context: RequestContext,
    routing_key: str,
    fields: Mapping[str, Any],
    opening: Callable[[], str],
    now_ms: int,
) -> RequestSplit | None:
    """Return the side of a request by the label of a target; None where the split is over or the label is none."""
    rule = rule_of(label)
    if rule is None:
        return None
    found = RequestSplit(rule, route, context, routing_key, fields, opening, now_ms)
    return found if found.side else None


def _key(what: str, context: RequestContext, routing_key: str, fields: Mapping[str, Any]) -> str:
    match what:
        case "tenant":
            return context.tenant
        case "key":
            return context.key_id or context.caller
        case "user":
            return _user(fields)
        case _:
            return routing_key


def _user(fields: Mapping[str, Any]) -> str:
    metadata = fields.get("metadata")
    said = [fields.get(name) for name in _USERS]
    if isinstance(metadata, dict):
        said.append(metadata.get("user_id"))
    return next((one for one in said if isinstance(one, str) and one), "")
