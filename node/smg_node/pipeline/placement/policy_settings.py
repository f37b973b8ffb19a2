"""Policy settings: builds the routing policies and their options from settings and plug-ins.

Policies are plug-ins: an installed package names a factory of its own as an entry point of the group
`smg.policy`, and its name can be set like those of the built-in ones.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

from smg_node.config.frozen_settings import Settings
from smg_node.config.schema.problems import ConfigurationError, Problem
from smg_node.core.errors import SmgError
from smg_node.core.registry import Registry
from smg_node.fleet.load.worker_load import LoadOptions
from smg_node.pipeline.placement.placement_request import EncodeRule
from smg_node.routing.policy import Bindings, PolicyFactory, PolicyOptions
from smg_node.routing.policy_registry import Policies, known_policies

PolicyField: TypeAlias = Literal["policy", "prefill_policy", "decode_policy", "encode_policy"]
POLICY_FIELDS: Final[tuple[PolicyField, ...]] = (
    "policy",
    "prefill_policy",
    "decode_policy",
    "encode_policy",
)
"""What a model may have policies for: whole requests, the two halves of those that two engines share, and pictures."""
_KNOB: Final = "routing.policy"
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)

_log = logging.getLogger("smg_node.pipeline")


def all_policies(plugins: Sequence[tuple[str, str]]) -> Registry[PolicyFactory]:
    """Return the built-in policies and `plugins`, names and `module:object`; ConfigurationError for
    a broken one.
    """
    known = known_policies()
    for name, place in plugins:
        if not _NAME.fullmatch(name):
            raise _broken(name, "a policy is called in lower-case letters, digits and _")
        try:
            known.add(name, _loaded(place))
        except SmgError as error:
            raise _broken(name, "there is a policy of that name already") from error
        except Exception as error:
            # A door: whatever stands in somebody else's package, the operator is told its name.
            raise _broken(name, f"{place}: {error!r}") from error
    return known


def _loaded(place: str) -> PolicyFactory:
    """Return the object that an entry point names."""
    module, _, path = place.partition(":")
    found: Any = import_module(module.strip())
    for part in path.partition("[")[0].strip().split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError("it is nothing that makes a policy")
    factory: PolicyFactory = found
    return factory


def _broken(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        [Problem(_KNOB, f"the policy plug-in {name[:64]!r} is no use: {why}")]
    )


def build_policies(settings: Settings, sticky: Bindings) -> Policies:
    """Return the policies; ConfigurationError with the knob that names an unknown one."""
    routing = settings.routing
    policies = Policies(
        sticky,
        policy_options(settings),
        sticky=routing.sticky_sessions,
        known=all_policies(settings.policy_plugins),
        warn=_log.warning,
    )
    named = {
        _KNOB: routing.policy,
        "routing.prefill_policy": routing.prefill_policy,
        "routing.decode_policy": routing.decode_policy,
        "routing.encode_policy": routing.encode_policy,
        "routing.manual_delegate": routing.manual_delegate,
    }
    for field in POLICY_FIELDS:
        by_name = by_model(settings, field)
        named |= {f"models.{name}.{field}": policy for name, policy in by_name.items()}
    for knob, name in named.items():
        try:
            policies.named(name)
        except SmgError as error:
            raise ConfigurationError([Problem(knob, error.message)]) from error
    return policies


def by_model(settings: Settings, field: PolicyField = "policy") -> Mapping[str, str]:
    """Return the policies of models with one of their own, for that part of their requests."""
    said = {name: getattr(model, field) for name, model in settings.models.items()}
    return {name: policy for name, policy in said.items() if policy}


def encode_rule(settings: Settings) -> EncodeRule:
    """Return the rule for who encodes pictures, from these settings."""
    routing = settings.routing
    return EncodeRule(routing.encode_policy, routing.encode_fallback, routing.encode_timeout_s)


def policy_options(settings: Settings) -> PolicyOptions:
    """Return the options of policies from these settings."""
    routing = settings.routing
    return PolicyOptions(
        load_factor=routing.load_ratio,
        prefix_tokens=routing.prefix_tokens,
        assignment=routing.manual_assignment,
        delegate=routing.manual_delegate,
        metric=routing.power_of_two_metric,
        cache_mode=routing.cache_mode,
        cache_threshold=routing.cache_match_ratio,
        balance_abs=routing.balance_abs,
        balance_rel=routing.balance_ratio,
        bucket_adjust_s=routing.bucket_adjust_s,
        bucket_tokens_max=routing.bucket_tokens_max,
        dollar_seconds=routing.dollar_s,
        node=settings.name,
    )


def load_options(settings: Settings) -> LoadOptions:
    """Return the options of the load model from these settings."""
    routing, overload = settings.routing, settings.overload
    return LoadOptions(
        prefill_rate=routing.prefill_tokens_per_s,
        pressure_weight_s=routing.pressure_weight_s,
        busy_weight_s=routing.busy_weight_s,
        waiting_max=overload.waiting_max,
        kv_max=overload.kv_ratio,
        backlog_max=routing.backlog_max,
        encoder_rate=settings.media.tokens_per_s,
    )
