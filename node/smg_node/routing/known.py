"""Every policy by name; the built-ins enter by the same door as anyone's."""

from smg_node.core.registry import Registry
from smg_node.routing.policies.passthrough import Passthrough
from smg_node.routing.policies.power_of_two import PowerOfTwo
from smg_node.routing.policies.random import Random
from smg_node.routing.policies.round_robin import RoundRobin
from smg_node.routing.policy import PolicyFactory


def known_policies() -> Registry[PolicyFactory]:
    """Return a registry with the built-in policies."""
    registry: Registry[PolicyFactory] = Registry("policy")
    registry.add("passthrough", Passthrough)
    registry.add("power_of_two", PowerOfTwo)
    registry.add("random", Random)
    registry.add("round_robin", RoundRobin)
    return registry
