"""Final check of the store's content against the acknowledged turns: nothing missing, nothing else,
nothing twice.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.history.chat_clients import Kept, Ledger
from smg_chaos.gameday.history.response_request import CONVERSATIONS, RESPONSES, ask
from smg_chaos.gameday.lab.lab import Lab
from smg_chaos.statistics import Figure, percentile

_PAGE: Final = 100
_AT_ONCE: Final = 8
_SHOWN: Final = 5


@dataclass(slots=True)
class Found:
    """Differences from what clients were told."""

    missing: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    unlisted: int = 0
    """Acknowledged turns that their conversation does not have."""
    twice: int = 0
    """Turns that a conversation has more than once."""
    refused: int = 0
    """Turns that were refused and are there."""
    out_of_order: int = 0


async def checked(lab: Lab, nodes: Sequence[SmgAgent], ledger: Ledger) -> Found:
    """Read everything back, of each turn at another node than answered it, and compare."""
    found = Found()
    todo = list(enumerate(ledger.kept))

    async def look() -> None:
        while todo:
            number, kept = todo.pop()
            others = [node for node in nodes if node.name != kept.node] or list(nodes)
            await _look(lab, others[number % len(others)], kept, found)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(look())
    for conversation in dict.fromkeys(one.conversation for one in ledger.kept if one.conversation):
        words = await _words(lab, nodes[0], conversation)
        compare(conversation, words, ledger, found)
    return found


async def _look(lab: Lab, node: SmgAgent, kept: Kept, found: Found) -> None:
    name = str(kept.said["id"])
    answer = await ask(lab, node, "GET", f"{RESPONSES}/{name}")
    if answer.status == 404:
        found.missing.append(name)
    elif answer.status != 200:
        raise ClusterError(f"{node.name} does not say what {name} is: {answer.status}")
    elif answer.said != kept.said:
        found.different.append(name)


async def _words(lab: Lab, node: SmgAgent, conversation: str) -> list[str]:
    """Return the users' messages of a conversation, the oldest first."""
    said: list[str] = []
    after = ""
    while True:
        path = f"{CONVERSATIONS}/{conversation}/items?order=asc&limit={_PAGE}{after}"
        answer = await ask(lab, node, "GET", path)
        if answer.status != 200:
            raise ClusterError(f"{node.name} does not list {conversation}: {answer.status}")
        said += [text_of(item) for item in answer.said["data"] if item.get("role") == "user"]
        if not answer.said["has_more"]:
            return said
        after = f"&after={answer.said['last_id']}"


def text_of(item: dict[str, Any]) -> str:
    """Return the text of a message."""
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def compare(conversation: str, words: Sequence[str], ledger: Ledger, found: Found) -> None:
    """Compare the content of a conversation with what was acknowledged for it."""
    there = Counter(words)
    told = [one.words for one in ledger.kept if one.conversation == conversation]
    found.unlisted += sum(one not in there for one in told)
    found.twice += sum(count - 1 for count in there.values())
    found.refused += sum(one in there for where, one in ledger.refused if where == conversation)
    order = {one: place for place, one in enumerate(words)}
    places = [order[one] for one in told if one in order]
    found.out_of_order += sum(late < early for early, late in pairwise(places))


def figures(who: str, ledger: Ledger, found: Found) -> list[Figure]:
    """Return the figures of the check."""
    of = f"of {len(ledger.kept)}, {ledger.spooled} of them spooled"
    shown = ", ".join([*found.missing, *found.different][:_SHOWN])
    return [
        Figure(f"{who}: acknowledged turns missing", len(found.missing), "", 0, of),
        Figure(f"{who}: told otherwise than acknowledged", len(found.different), "", 0, shown),
        Figure(f"{who}: acknowledged and not in the conversation", found.unlisted, "", 0),
        Figure(f"{who}: turns twice in a conversation", found.twice, "", 0),
        Figure(f"{who}: turns out of order", found.out_of_order, "", 0),
        Figure(
            f"{who}: refused and there all the same",
            found.refused,
            "",
            0,
            f"of {len(ledger.refused)} refused",
        ),
        Figure(f"{who}: acknowledged and denied while a spool had it", ledger.denied, "", 0),
        Figure(
            f"{who}: failed without a reason",
            len(ledger.failed),
            "",
            0,
            f"{ledger.forgotten} with store:false answered, {ledger.lost} lost with their node",
        ),
        Figure(f"{who}: an answer takes, p99", percentile(ledger.took_s, 0.99), "s"),
    ]
