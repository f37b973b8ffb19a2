"""Route choices: the ways among a route's targets, by the word that a route says for each. Pure."""

from smg_node.core.registry import Registry
from smg_node.routing.cache_affinity import Affinity
from smg_node.routing.policies.cheapest import Cheapest
from smg_node.routing.policies.fastest import Fastest
from smg_node.routing.policies.weighted import Weighted
from smg_node.routing.policy import PolicyFactory


def known_choices() -> Registry[PolicyFactory]:
    """Return a registry of them."""
    registry: Registry[PolicyFactory] = Registry("choice")
    registry.add("weighted", Weighted)
    registry.add("cheapest", Cheapest)
    registry.add("fastest", Fastest)
    registry.add("affinity", Affinity)
    return registry
