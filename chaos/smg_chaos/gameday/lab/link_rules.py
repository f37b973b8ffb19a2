"""Link rules: delay, loss, duplication, reordering and blocking of frames on a directed link. Pure.

A rule belongs to a directed link, `a>b`. `a>*` is everything `a` sends, `*>b` everything sent to
`b`, `*` every link. The most exact name counts, and it counts alone: rules are not added up.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypeAlias

import msgspec

Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
Milliseconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=600_000)]


class LinkRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Faults of a link.

    A frame takes `delay_ms` and a part of `jitter_ms`, evenly drawn. `loss`, `duplicate` and
    `reorder` are shares of frames: lost, sent twice, held back until later ones have overtaken
    them. `block`: nothing passes.
    """

    delay_ms: Milliseconds = 0.0
    jitter_ms: Milliseconds = 0.0
    loss: Share = 0.0
    duplicate: Share = 0.0
    reorder: Share = 0.0
    block: bool = False


CLEAR: Final = LinkRule()
BLOCKED: Final = LinkRule(block=True)
Rules: TypeAlias = Mapping[str, LinkRule]


class RuleError(ValueError):
    """An impossible rule: the message says where and why."""


def rules_from(content: bytes) -> dict[str, LinkRule]:
    """Return the rules written in JSON; RuleError says what is wrong with them."""
    try:
        return msgspec.json.decode(content, type=dict[str, LinkRule])
    except msgspec.DecodeError as error:
        raise RuleError(f"rules: {error}") from error


def check(rules: Rules, places: frozenset[str]) -> None:
    """RuleError if a rule names a link between places that do not exist."""
    for link in rules:
        sender, arrow, receiver = link.partition(">")
        if link != "*" and not (arrow and {sender, receiver} <= places | {"*"}):
            raise RuleError(f"rules: {link!r} is no link: say a>b, a>*, *>b or *")


def rule_of(rules: Rules, sender: str, receiver: str) -> LinkRule:
    """Return the one rule that counts on the link from `sender` to `receiver`."""
    for name in (f"{sender}>{receiver}", f"{sender}>*", f"*>{receiver}", "*>*", "*"):
        if name in rules:
            return rules[name]
    return CLEAR


def cut(one: Sequence[str], other: Sequence[str]) -> dict[str, LinkRule]:
    """Return rules that block every link between two groups of places, both ways."""
    pairs = [(a, b) for a in one for b in other]
    return {f"{a}>{b}": BLOCKED for a, b in [*pairs, *((b, a) for a, b in pairs)]}
