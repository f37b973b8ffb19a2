"""Policy registry: every policy by name, built-in or from a plug-in, made when first wanted."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from smg_node.core.registry import Registry
from smg_node.routing.policies.bucket import Bucket
from smg_node.routing.policies.cache_aware import cache_aware
from smg_node.routing.policies.consistent_hashing import ConsistentHashing
from smg_node.routing.policies.least_load import LeastLoad
from smg_node.routing.policies.manual import Manual
from smg_node.routing.policies.passthrough import Passthrough
from smg_node.routing.policies.power_of_two import PowerOfTwo
from smg_node.routing.policies.prefix_hash import PrefixHash
from smg_node.routing.policies.random import Random
from smg_node.routing.policies.round_robin import RoundRobin
from smg_node.routing.policies.sticky import Sticky
from smg_node.routing.policy import (
    CHOICE,
    Bindings,
    Policy,
    PolicyFactory,
    PolicyOptions,
    PolicyParts,
    Unchosen,
)


def known_policies() -> Registry[PolicyFactory]:
    """Return a registry with the built-in policies."""
    registry: Registry[PolicyFactory] = Registry("policy")
    registry.add("bucket", Bucket)
    registry.add("cache_aware", cache_aware)
    registry.add("consistent_hashing", ConsistentHashing)
    registry.add("least_load", LeastLoad)
    registry.add("manual", Manual)
    registry.add("passthrough", Passthrough)
    registry.add("power_of_two", PowerOfTwo)
    registry.add("prefix_hash", PrefixHash)
    registry.add("random", Random)
    registry.add("round_robin", RoundRobin)
    return registry


class Policies:
    """One policy per name, made when it is first wanted and kept: it may have state.

    With `sticky`, a routing key goes before every one of them that has no table of its own. A way of routes is one
    too, under the word of the route after `CHOICE`.
    """

    def __init__(
        self,
        bindings: Bindings,
        options: PolicyOptions | None = None,
        *,
        sticky: bool = False,
        known: Registry[PolicyFactory] | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._bindings = bindings
        self._sticky = sticky
        self._known = known if known is not None else known_policies()
        self._options = options if options is not None else PolicyOptions()
        self._warn = warn
        self._made: dict[str, Policy] = {}
        self.unchosen: Final[dict[str, Unchosen]] = {}
        """Those made so far to which an only candidate may be told; nobody else changes it."""

    def named(self, name: str) -> Policy:
        """Return the policy of that name; NOT_FOUND with the nearest one if there is none."""
        found = self._made.get(name)
        if found is None:
            if name.startswith(CHOICE):
                found = self._choice(name.removeprefix(CHOICE))
            else:
                found = self._bare(name)
                if self._sticky and not isinstance(found, Manual):
                    found = Sticky(found, self._bindings)
            self._made[name] = found
            if isinstance(found, Unchosen):
                self.unchosen[name] = found
        return found

    def _choice(self, word: str) -> Policy:
        """Return a way of routes; one that is unknown here is by weight."""
        # Imported here: a node without routes has none of it.
        from smg_node.routing.route_choices import known_choices

        known = known_choices()
        factory = known.get(word if word in known else "weighted")
        return factory(PolicyParts(self._bindings, self._options))

    def _bare(self, name: str) -> Policy:
        factory = self._known.get(name)
        parts = PolicyParts(
            self._bindings,
            self._options,
            # A delegate that is the policy itself would ask itself for ever.
            named=lambda other: self._bare("random" if other == name else other),
        )
        return factory(parts if self._warn is None else replace(parts, warn=self._warn))

    def retune(self, options: PolicyOptions, *, sticky: bool) -> None:
        """Take new options; what a policy had counted begins anew then."""
        if (options, sticky) != (self._options, self._sticky):
            self._options, self._sticky = options, sticky
            self._made.clear()
            self.unchosen.clear()


class OwnBindings:
    """Bindings of one node alone; the oldest go first above `entries_max`."""

    def __init__(self, entries_max: int = 50_000) -> None:
        self._bound: dict[str, str] = {}
        self._keys: dict[str, int] = {}
        self._entries_max = entries_max

    def worker_of(self, key: str) -> str | None:
        """See `Bindings`."""
        return self._bound.get(key)

    def keys_at(self, worker_id: str) -> int:
        """See `Bindings`."""
        return self._keys.get(worker_id, 0)

    def bind(self, key: str, worker_id: str, why: str) -> None:
        """See `Bindings`."""
        self.release(key)
        self._bound[key] = worker_id
        self._keys[worker_id] = self._keys.get(worker_id, 0) + 1
        if len(self._bound) > self._entries_max:
            self.release(next(iter(self._bound)))

    def touch(self, key: str) -> None:
        """See `Bindings`."""
        worker = self._bound.pop(key, None)
        if worker is not None:
            self._bound[key] = worker

    def release(self, key: str) -> None:
        """See `Bindings`."""
        worker = self._bound.pop(key, None)
        if worker is None:
            return
        self._keys[worker] -= 1
        if not self._keys[worker]:
            del self._keys[worker]
