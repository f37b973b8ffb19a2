"""Route choices: the ways among a route's targets, by the word that a route says for each. Pure."""

from smg_node.core.registry import Registry
from smg_node.routing.policies.affinity import Affinity
from smg_node.routing.policies.weighted import Weighted
from smg_node.routing.policy import PolicyFactory


def known_choices() -> Registry[PolicyFactory]:
    """Return a registry of them."""
    registry: Registry[PolicyFactory] = Registry("choice")
    registry.add("weighted", Weighted)
    registry.add("affinity", Affinity)
    # Until they have ways of their own, these share out by weight as well.
    registry.add("cheapest", Weighted)
    registry.add("fastest", Weighted)
    return registry
