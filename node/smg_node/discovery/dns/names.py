"""Names: a round of answers becomes sightings, and how long it is believed. Pure.

Of SRV records the lowest priority counts, and the others are counted only. Weights become the label `weight`, scaled into
what that label may be, where they differ.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import MappingProxyType
from typing import Final

from smg_node.config.address import join_host_port
from smg_node.config.worker_url import WorkerUrl
from smg_node.discovery.dns.answers import RECORDS_MAX, Addresses, Answer, SrvRecord
from smg_node.discovery.dns.options import DnsOptions
from smg_node.discovery.sighting import Endpoint, Sighting, Unusable

TTL_MIN_S: Final = 5.0
TTL_MAX_S: Final = 60.0
"""A view older than 90 seconds is not believed any more."""
WEIGHT_LABEL: Final = "weight"
_WEIGHT_MOST: Final = 5.0
_WEIGHT_LEAST: Final = 0.05
"""What the label may be at least. A weight of 0 is "a very small chance" (RFC 2782)."""
_UNUSABLE_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class Seen:
    """One endpoint of a round: its sighting, and the host whose address it is."""

    sighting: Sighting
    host: str


@dataclass(frozen=True, slots=True)
class Round:
    """What the name of a source has now. `wait_s` is how long that is believed.

    `unanswered` are hosts of which it is not known what addresses they have now.
    """

    seen: Mapping[Endpoint, Seen]
    wait_s: float
    unanswered: frozenset[str] = frozenset()
    unusable: tuple[Unusable, ...] = ()


def clamp_ttl(ttl_s: float) -> float:
    """Return how long an answer is believed, in seconds."""
    return min(max(float(ttl_s), TTL_MIN_S), TTL_MAX_S)


def lowest_priority(records: Sequence[SrvRecord]) -> list[SrvRecord]:
    """Return the records of the lowest priority, sorted, each endpoint once and with its largest weight."""
    if not records:
        return []
    lowest = min(one.priority for one in records)
    group: dict[tuple[str, int], SrvRecord] = {}
    for one in sorted(records, key=lambda one: (one.target, one.port, one.weight)):
        if one.priority == lowest:
            group[one.target, one.port] = one
    return list(group.values())


def round_of_host(options: DnsOptions, addresses: Addresses) -> Round:
    """Return the round of a name that has addresses."""
    seen: dict[Endpoint, Seen] = {}
    unusable: list[Unusable] = []
    worker, host = options.worker(), host_name(options.name)
    for address in sorted_addresses(addresses.found):
        _add(seen, unusable, replace(worker, host=address, port=options.port), host, f"host {host}")
    return Round(MappingProxyType(seen), clamp_ttl(addresses.ttl_s), unusable=_few(unusable))


def round_of_services(
    options: DnsOptions,
    answer: Answer,
    found: Mapping[str, Addresses],
    unanswered: Mapping[str, str],
) -> Round:
    """Return the round of a name that has SRV records, with the addresses of their targets."""
    seen: dict[Endpoint, Seen] = {}
    group = lowest_priority(answer.services)
    unusable = [Unusable(f"target {name}", why) for name, why in sorted(unanswered.items())]
    worker, weights = options.worker(), _weights(group)
    for record, weight in zip(group, weights, strict=True):
        if not record.target:
            continue  # "decidedly not available at this domain"
        origin = f"target {record.target}:{record.port}"
        if record.port == 0:
            unusable.append(Unusable(origin, "port 0 cannot be called"))
            continue
        addresses = found.get(record.target)
        if addresses is not None and not addresses.found:
            unusable.append(Unusable(origin, "it has no address"))
        for address in sorted_addresses(addresses.found if addresses is not None else ()):
            url = _weighted(replace(worker, host=address, port=record.port), weight)
            _add(seen, unusable, url, record.target, origin)
    unusable += _others(host_name(options.name), answer)
    ttl_s = min([answer.ttl_s, *(one.ttl_s for one in found.values())])
    return Round(
        MappingProxyType(seen),
        TTL_MIN_S if unanswered else clamp_ttl(ttl_s),
        frozenset(unanswered),
        _few(unusable),
    )


def host_name(name: str) -> str:
    """Return a name in one spelling."""
    return name.lower().removesuffix(".")


def sorted_addresses(addresses: Iterable[str]) -> list[str]:
    """Return addresses in the order of their numbers, each once; what is none comes last."""

    def order(address: str) -> tuple[int, int, str]:
        parsed = _parsed(address)
        return (parsed.version, int(parsed), address) if parsed else (9, 0, address)

    return sorted(set(addresses), key=order)


def _add(
    seen: dict[Endpoint, Seen], unusable: list[Unusable], url: WorkerUrl, host: str, origin: str
) -> None:
    why = _no_use(url.host)
    if why:
        unusable.append(Unusable(origin, f"{url.host[:80]} {why}"))
        return
    endpoint = join_host_port(url.host, url.port)
    # Two targets may have one address: the first one stands for both.
    seen.setdefault(endpoint, Seen(Sighting(url, origin=origin), host))


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(address)
    except ValueError:
        return None


def _no_use(address: str) -> str:
    """Return why an address is none of an engine, "" if it may be."""
    parsed = _parsed(address)
    if parsed is None:
        return "is no address"
    if parsed.is_unspecified:
        return "is no address that can be called"
    if parsed.is_multicast:
        return "is an address of many"
    if isinstance(parsed, IPv6Address) and parsed.is_link_local:
        return "has a meaning on one link only, and DNS cannot say which"
    return ""


def _weights(group: Sequence[SrvRecord]) -> list[str]:
    """Return the label of each record, "" where none is needed.

    The scale is a power of ten, so that the labels of all need not change when one record comes or goes.
    """
    weights = [one.weight for one in group]
    if len(set(weights)) < 2:
        return [""] * len(weights)
    scale = 1.0
    while max(weights) / scale > _WEIGHT_MOST:
        scale *= 10
    return [f"{max(weight / scale, _WEIGHT_LEAST):g}" for weight in weights]


def _weighted(url: WorkerUrl, weight: str) -> WorkerUrl:
    """Return the URL with its weight; what an operator says of all goes before."""
    if not weight or WEIGHT_LABEL in url.labels:
        return url
    labels = dict(sorted([*url.labels.items(), (WEIGHT_LABEL, weight)]))
    return replace(url, labels=MappingProxyType(labels))


def _others(name: str, answer: Answer) -> list[Unusable]:
    said = []
    if answer.services:
        lowest = min(one.priority for one in answer.services)
        behind = sum(one.priority > lowest for one in answer.services)
        if behind:
            said.append(Unusable(name, f"{behind} records of less urgent priorities are not used"))
    if answer.left_out:
        said.append(Unusable(name, f"{answer.left_out} records beyond {RECORDS_MAX}"))
    return said


def _few(unusable: Sequence[Unusable]) -> tuple[Unusable, ...]:
    if len(unusable) <= _UNUSABLE_MAX:
        return tuple(unusable)
    more = len(unusable) - _UNUSABLE_MAX + 1
    return (*unusable[: _UNUSABLE_MAX - 1], Unusable("", f"and {more} more"))
