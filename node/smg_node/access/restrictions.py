"""Restrictions of a credential: which models, from which networks, by which APIs, how urgently at most.

They narrow what a role allows, and never widen it. What is not said is not restricted. A model's name is
compared as the client spells it, an alias as an alias. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from smg_node.core.request_context import PRIORITIES, Priority

ENTRIES_MAX: Final = 32
"""Of models, and of networks."""
MODEL_CHARACTERS_MAX: Final = 128
APIS: Final = (
    "chat", "completions", "messages", "responses", "interactions", "gemini", "embeddings", "rerank", "classify",
    "tokenize", "realtime", "mcp", "admin",
)  # fmt: skip
"""Names of groups of routes; `admin` are those of operators and administrators."""
_CACHED: Final = 256

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Restrictions:
    """What a credential may be used for. An empty one of the four restricts nothing.

    `models` are names in which `*` stands for any characters; `networks` are those that the peer of the
    connection may be in; `routes` are of `APIS`; `max_priority` is the most urgent class.
    """

    models: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    max_priority: Priority | None = None


NO_RESTRICTIONS: Final = Restrictions()


def restrictions_of(
    models: Iterable[str], networks: Iterable[str], routes: Iterable[str], max_priority: str
) -> Restrictions | None:
    """Return the restrictions of a record; None for none. A class of priority that is unknown here is the least
    urgent one.
    """
    least: Priority = PRIORITIES[-1]
    known: Priority | None = next((one for one in PRIORITIES if one == max_priority), least)
    made = Restrictions(
        tuple(models), tuple(networks), tuple(routes), known if max_priority else None
    )
    return None if made == NO_RESTRICTIONS else made


def allows_model(restrictions: Restrictions, name: str) -> bool:
    """Whether a model may be asked for by that name."""
    models = restrictions.models
    return not models or any(_is_like(name, pattern) for pattern in models)


def allows_peer(restrictions: Restrictions, peer: str) -> bool:
    """Whether a request may come from that address, of which "" is a UNIX socket and in no network."""
    if not restrictions.networks:
        return True
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return any(address.ipv4_mapped in one for one in _networks(restrictions.networks))
    return any(address in one for one in _networks(restrictions.networks))


def allows_api(restrictions: Restrictions, api: str) -> bool:
    """Whether a route of that API may be asked; "" is for any."""
    return not restrictions.routes or not api or api in restrictions.routes


def allows_priority(restrictions: Restrictions, claimed: Priority) -> bool:
    """Whether a request may claim to be so urgent."""
    most = restrictions.max_priority
    return most is None or PRIORITIES.index(claimed) >= PRIORITIES.index(most)


def is_within(narrow: Restrictions | None, wide: Restrictions | None) -> bool:
    """Whether whatever `narrow` allows is allowed by `wide` as well, as far as can be seen from their texts.

    A pattern of models is within one that is the same, or that matches it as if it were a name.
    """
    if wide is None:
        return True
    if narrow is None:
        return False
    if wide.models and not (
        narrow.models and all(allows_model(wide, pattern) for pattern in narrow.models)
    ):
        return False
    if wide.networks and not (narrow.networks and _inside(narrow.networks, wide.networks)):
        return False
    if wide.routes and not (narrow.routes and set(narrow.routes) <= set(wide.routes)):
        return False
    return wide.max_priority is None or (
        narrow.max_priority is not None and allows_priority(wide, narrow.max_priority)
    )


def read_network(text: str) -> str:
    """Return a network in its own spelling; ValueError for what is none, or has bits beyond its prefix."""
    return str(ip_network(text))


def _inside(narrow: tuple[str, ...], wide: tuple[str, ...]) -> bool:
    read = _networks(narrow)
    return len(read) == len(narrow) and all(
        any(_is_subnet(one, other) for other in _networks(wide)) for one in read
    )


def _is_subnet(one: Network, other: Network) -> bool:
    if isinstance(one, IPv4Network) and isinstance(other, IPv4Network):
        return one.subnet_of(other)
    if isinstance(one, IPv6Network) and isinstance(other, IPv6Network):
        return one.subnet_of(other)
    return False


def _is_like(name: str, pattern: str) -> bool:
    """Whether a name is spelled like a pattern. Takes time in proportion to the name, whatever the pattern is."""
    if "*" not in pattern:
        return name == pattern
    first, *middle, last = pattern.split("*")
    if len(name) < len(first) + len(last):
        return False
    if not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        # The leftmost place leaves most room for the parts behind it.
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


@lru_cache(_CACHED)
def _networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    """Return the networks that can be read; one that cannot holds nobody."""
    found: list[Network] = []
    for text in texts:
        try:
            found.append(ip_network(text))
        except ValueError:
            continue
    return tuple(found)
