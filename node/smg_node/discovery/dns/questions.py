"""Questions of one round: a name's SRV records or addresses, then the addresses of targets that did not come along.

The questions are asked through a `Lookup`, which is the door; here is only which of them follow from which answers.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from smg_node.discovery.dns.answers import Addresses, Answer, UnansweredError
from smg_node.discovery.dns.lookup import Lookup
from smg_node.discovery.dns.names import Round, lowest_priority, round_of_host, round_of_services
from smg_node.discovery.dns.options import DnsOptions

TARGETS_AT_ONCE: Final = 16
"""So many targets are asked for side by side."""


async def ask_round(lookup: Lookup, options: DnsOptions) -> Round:
    """Return what the name of a source has now; UnansweredError if nothing was answered that says anything."""
    if not options.is_srv:
        addresses = await _addresses(lookup, options.name)
        return await asyncio.to_thread(round_of_host, options, addresses)
    answer = await lookup.ask(options.name, "SRV")
    found, unanswered = await _targets(lookup, answer)
    if unanswered and not found:
        raise UnansweredError(next(iter(unanswered.values())))
    # In a thread: a thousand records take 50 ms.
    return await asyncio.to_thread(round_of_services, options, answer, found, unanswered)


async def _addresses(lookup: Lookup, host: str) -> Addresses:
    """Return a host's IPv4 addresses, or its IPv6 addresses where it has none of those: each engine is there once."""
    first = await lookup.ask(host, "A")
    if first.addresses or not first.exists:
        return _of(first, first.ttl_s)
    second = await lookup.ask(host, "AAAA")
    # An IPv4 address that is added is seen when that answer is no longer believed.
    return _of(second, min(first.ttl_s, second.ttl_s))


def _of(answer: Answer, ttl_s: int) -> Addresses:
    return Addresses(answer.addresses, ttl_s)


async def _targets(
    lookup: Lookup, answer: Answer
) -> tuple[Mapping[str, Addresses], Mapping[str, str]]:
    """Return addresses of the targets that count, and of those that nobody answered for why."""
    targets = dict.fromkeys(one.target for one in lowest_priority(answer.services) if one.target)
    found = {name: answer.additional[name] for name in targets if name in answer.additional}
    unanswered: dict[str, str] = {}
    waiting = iter([name for name in targets if name not in found])

    async def ask() -> None:
        for target in waiting:
            try:
                found[target] = await _addresses(lookup, target)
            except UnansweredError as error:
                unanswered[target] = f"{target}: {error}"

    async with asyncio.TaskGroup() as group:
        for _ in range(min(TARGETS_AT_ONCE, len(targets) - len(found))):
            group.create_task(ask())
    # In the order of the records, however the answers came.
    in_order = {name: found[name] for name in targets if name in found}
    return in_order, {name: unanswered[name] for name in targets if name in unanswered}
