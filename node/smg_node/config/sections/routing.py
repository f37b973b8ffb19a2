"""Routing knobs: policy and costs of the choice of a worker."""

import re
from typing import Literal

from pydantic import field_validator

from smg_node.config.schema.declaration import Section, choice, number, switch, text, words

_HEADER = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_POLICY = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)


class Routing(Section):
    """How a request gets its worker."""

    policy: str = text(
        "cache_aware",
        "Rule that picks a worker among the ready ones.",
        most=64,
        short="--policy",
        metavar="NAME",
    )
    prefill_policy: str = text(
        "cache_aware",
        "Rule that picks who works a prompt off, where prefill and decode are engines of their own.",
        most=64,
        aliases=("--prefill-policy",),
        metavar="NAME",
    )
    decode_policy: str = text(
        "least_load",
        "Rule that picks who draws the answer to a prompt that another engine worked off.",
        most=64,
        aliases=("--decode-policy",),
        metavar="NAME",
    )
    encode_policy: str = text(
        "consistent_hashing",
        "Rule that picks who encodes a picture, where engines do that for others; its key is the picture's digest.",
        most=64,
        aliases=("--encode-policy",),
        metavar="NAME",
    )
    encode_timeout_s: float = number(
        30,
        "Seconds an engine has to take a picture that it encodes for another one, before the request is tried again.",
        low=0.05,
        high=3600,
        why="below 50 ms a large picture is not even sent; after an hour no client still waits",
    )
    encode_fallback: bool = switch(
        True,
        "Let the engine that works a prompt off encode its pictures itself, where none that does it for others can.",
    )
    fallback_regular: bool = switch(
        True,
        "Let regular workers of a model take its requests where no pair of a prefill and a decode worker can.",
    )
    wait_for_worker_s: float = number(
        2,
        "Seconds a request waits when its model has workers but none is ready.",
        low=0,
        high=600,
        why="0 refuses at once; no client waits longer than 10 minutes",
    )
    sticky_sessions: bool = switch(
        False,
        "Requests with one routing key go to one worker, on every node.",
        short="--sticky-sessions",
    )
    key_headers: tuple[str, ...] = words(
        ("x-smg-routing-key", "x-claude-code-session-id"),
        "Request headers that may carry a routing key; the first one present wins.",
        most=8,
        metavar="HEADER",
    )
    load_ratio: float = number(
        1.25,
        "How many times its fair share of open requests a worker takes before hashed keys go to its"
        " neighbour (consistent_hashing, prefix_hash).",
        low=1.05,
        high=100,
        why="at 1 every key would wander; at 100 nothing is bounded any more",
    )
    prefix_tokens: int = number(
        256,
        "Tokens from the start of a prompt by which prefix_hash tells prompts apart.",
        low=1,
        high=1_000_000,
        why="at least one token; a million is longer than any shared beginning",
    )
    manual_assignment: Literal["ring", "random", "min_load", "min_group"] = choice(
        "ring",
        "How the policy manual picks a worker for a key it sees for the first time: by hash, by chance, with the"
        " fewest open requests, with the fewest keys.",
    )
    manual_delegate: str = text(
        "power_of_two",
        "Policy for requests without a routing key where the policy is manual.",
        most=64,
        metavar="NAME",
    )
    zone: str = text(
        "",
        "Zone that this node is in; workers whose label `zone` says the same go first. Empty: none.",
        most=64,
        metavar="NAME",
    )
    zone_spill_ratio: float = number(
        0.8,
        "Share of the requests that the workers of the own zone run at once, from which on all zones are used.",
        low=0,
        high=1_000,
        why="0 ignores zones; at 1,000 the own zone is never left while it has a worker",
    )

    power_of_two_metric: Literal["expected_wait", "requests"] = choice(
        "expected_wait", "What power_of_two compares: seconds of expected wait, or open requests."
    )
    cache_mode: Literal["cost", "threshold"] = choice(
        "cost",
        "How cache_aware chooses: by expected seconds, or by the thresholds below, as other gateways do.",
    )
    cache_match_ratio: float = number(
        0.3,
        "Share of a prompt that must be cached somewhere for cache_aware to go there, by thresholds.",
        low=0,
        high=1,
        why="it is a share",
        aliases=("--cache-threshold",),
    )
    balance_abs: int = number(
        64,
        "How many more open requests than the emptiest the busiest worker may have before balance goes first"
        " (cache_aware by thresholds, bucket).",
        low=1,
        high=1_000_000,
        why="at 0 everything is out of balance; no worker has a million open requests",
        aliases=("--balance-abs-threshold",),
    )
    balance_ratio: float = number(
        1.5,
        "And how many times as many; balance goes first when both are exceeded.",
        low=1,
        high=1000,
        why="below 1 everything is out of balance; a thousand times never happens",
        aliases=("--balance-rel-threshold",),
    )
    bucket_adjust_s: float = number(
        5,
        "Seconds after which bucket draws the borders between short and long prompts anew.",
        low=0.1,
        high=3600,
        why="below 0.1 s it would do little else; after an hour other prompts come",
        aliases=("--bucket-adjust-interval-secs",),
    )
    bucket_tokens_max: int = number(
        4096,
        "Length that bucket takes for the longest until it has seen prompts.",
        low=1,
        high=1_000_000_000,
        why="at least one token; a billion is beyond any model",
    )
    prefill_tokens_per_s: float = number(
        8000,
        "Prompt tokens a second that a worker is expected to work off until that was measured.",
        low=500,
        high=200_000,
        why="measured rates are held to the same bounds: no engine in use is slower or faster",
    )
    dollar_s: float = number(
        0,
        "Seconds that a dollar counts as, where a route weighs how soon its targets answer and what they cost.",
        low=0,
        high=1_000_000,
        why="0 heeds no prices; with a million a hundredth of a cent outweighs a minute",
    )
    pressure_weight_s: float = number(
        0.15,
        "Seconds that a worker with half of its KV memory in use counts as later; more of it grows steeply.",
        low=0,
        high=60,
        why="0 heeds no memory; a minute outweighs every prompt",
    )
    busy_weight_s: float = number(
        1,
        "Seconds that a worker with all its slots taken counts as later than an idle one.",
        low=0,
        high=60,
        why="0 heeds no running requests; a minute outweighs every prompt",
    )
    backlog_max: int = number(
        8,
        "Requests beyond what a worker runs at once that make it full: further ones wait here, in order.",
        low=1,
        high=100_000,
        why="at least one must wait there, or its slots run dry; a longer queue belongs here",
    )

    @field_validator("key_headers")
    @classmethod
    def _headers(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        lower = tuple(name.lower() for name in names)
        for name in lower:
            if not _HEADER.fullmatch(name):
                raise ValueError(f"{name[:64]!r} is not a header name such as x-smg-routing-key")
        return lower

    @field_validator(
        "policy", "prefill_policy", "decode_policy", "encode_policy", "manual_delegate"
    )
    @classmethod
    def _name(cls, name: str) -> str:
        # Policies are plug-ins: whether one of that name exists is known where they are loaded.
        if not _POLICY.fullmatch(name):
            raise ValueError(f"{name!r} is not a policy name such as power_of_two")
        return name
