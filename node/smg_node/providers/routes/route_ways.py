"""Route ways: how a route chooses among its targets, and the experiments laid over that. Pure.

    choose: fastest                        weighted | cheapest | fastest | affinity
    split:                                 a share of the clients, for a time, to one provider or one target
      {to: bedrock-eu, share: 0.1, key: tenant, until: 2026-12-31, name: eu}
    shadow:                                a copy of a share of the requests, after their answers
      {to: openai-a/gpt-5.6, share: 0.01, budget: 20/day, keep_text: false}

Members are absent where they are not said: what a release without them has written reads the same.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

import msgspec

from smg_node.core.json_cursor import Cursor

WEIGHTED: Final = "weighted"
CHOICES: Final = (WEIGHTED, "cheapest", "fastest", "affinity")
SPLIT_KEYS: Final = ("tenant", "key", "user", "conversation")
"""What stays together in a split: a tenant, an API key, a user as the request names it, a conversation."""
SPLIT_NAME: Final = "split"
SPELLING: Final = "a target is a provider's name, a slash, and the vendor's name of the model"
SHADOWS_MAX: Final = 1_000_000
"""Copies a day."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_BUDGET: Final = re.compile(r"([0-9]{1,9})/day", re.ASCII)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


class Split(msgspec.Struct, frozen=True):
    """A share (0 to 1) of all `key`s goes to `to`, the others to the other targets.

    Which ones follows from the route's name, `name` and the key alone. It ends when the day `until` is over in UTC, or
    at that moment; "" is never.
    """

    to: str
    share: float
    key: str = "tenant"
    until: str = ""
    name: str = SPLIT_NAME

    @property
    def until_ms(self) -> int | None:
        """Its end in milliseconds since 1970; None where it has none."""
        return _end_ms(self.until) if self.until else None


class Shadow(msgspec.Struct, frozen=True):
    """A copy of a share (0 to 1) of the requests goes to `to`, at most `per_day` a day in the whole cluster.

    With `keep_text` both answers are kept as well; without it, what can be counted of them.
    """

    to: str
    share: float
    per_day: int
    keep_text: bool = False


class Placed(Protocol):
    """A target, as far as ways name it."""

    @property
    def provider(self) -> str:
        """Name of its provider."""
        ...

    @property
    def model(self) -> str:
        """The vendor's name of its model."""
        ...


def target_of(text: str) -> tuple[str, str]:
    """Return the provider and the model that `PROVIDER/MODEL` names; the model is "" for a provider alone."""
    provider, _, model = text.partition("/")
    return provider, model


def read_split(cursor: Cursor, targets: Sequence[Placed]) -> Split | None:
    """Return the split that a route's definition says; mistakes are noted."""
    inside = cursor.object("split")
    if inside is None:
        return None
    inside.only(("to", "share", "key", "until", "name"))
    to, share = inside.text("to", required=True, characters_min=1), _share(inside)
    key = inside.word("key", SPLIT_KEYS) or SPLIT_KEYS[0]
    until = inside.text("until") or ""
    if until and _end_ms(until) is None:
        inside.problem("until", "must be a day, 2026-12-31, or a moment, 2026-12-31T18:00:00Z")
    name = inside.text("name")
    if name is not None and not _NAME.fullmatch(name):
        inside.problem("name", "must be 1 to 64 lower-case letters, digits, `.`, `_` and `-`")
    if to is not None:
        provider, model = target_of(to)
        if not provider:
            inside.problem("to", f"must be a provider's name, or a target: {SPELLING}")
        elif not model and all(one.provider != provider for one in targets):
            inside.problem("to", f"no target of the route is at {provider[:64]!r}")
    if to is None or share is None:
        return None
    return Split(to, share, key, until, name or SPLIT_NAME)


def read_shadow(cursor: Cursor, own: str) -> Shadow | None:
    """Return the shadow that a route's definition says; mistakes are noted. `own` is what own engines are called there:
    copies go to vendors only.
    """
    inside = cursor.object("shadow")
    if inside is None:
        return None
    inside.only(("to", "share", "budget", "keep_text"))
    to, share = inside.text("to", required=True), _share(inside)
    budget = inside.text("budget", required=True)
    keep_text = inside.flag("keep_text")
    if to is not None and not all(target_of(to)):
        inside.problem("to", SPELLING)
    elif to is not None and target_of(to)[0] == own:
        inside.problem("to", "copies go to vendors, not to own engines")
    said = None if budget is None else _BUDGET.fullmatch(budget)
    if budget is not None and (said is None or not 1 <= int(said[1]) <= SHADOWS_MAX):
        inside.problem(
            "budget", f"must be so many requests a day, 20/day, between 1 and {SHADOWS_MAX}"
        )
        said = None
    if to is None or share is None or said is None:
        return None
    return Shadow(to, share, int(said[1]), bool(keep_text))


def ways_value(choose: str, split: Split | None, shadow: Shadow | None) -> dict[str, Any]:
    """Return the members of a route's definition that say these; nothing for what is as if unsaid."""
    found: dict[str, Any] = {}
    if choose != WEIGHTED:
        found["choose"] = choose
    if split is not None:
        found["split"] = {"to": split.to, "share": split.share, "key": split.key}
        if split.until:
            found["split"]["until"] = split.until
        if split.name != SPLIT_NAME:
            found["split"]["name"] = split.name
    if shadow is not None:
        budget = f"{shadow.per_day}/day"
        found["shadow"] = {"to": shadow.to, "share": shadow.share, "budget": budget}
        if shadow.keep_text:
            found["shadow"]["keep_text"] = True
    return found


def _share(inside: Cursor) -> float | None:
    if not inside.has("share"):
        inside.raw("share", required=True)
        return None
    return inside.number("share", low=0.0, high=1.0)


def _end_ms(until: str) -> int | None:
    """Return the moment that a day is over, or that is said; None for anything else."""
    try:
        found = datetime.fromisoformat(until)
        if _DAY.fullmatch(until):
            found += timedelta(days=1)
        elif "T" not in until:
            return None
        moment = found.replace(tzinfo=UTC) if found.tzinfo is None else found
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
