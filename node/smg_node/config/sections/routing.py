"""Knobs of the choice of a worker."""

import re
from typing import Literal

from pydantic import field_validator

from smg_node.config.declare import Section, choice, number, switch, text, words

_HEADER = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_POLICY = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)


class Routing(Section):
    """How a request gets its worker."""

    policy: str = text(
        "power_of_two",
        "Rule that picks a worker among the ready ones.",
        most=64,
        short="--policy",
        metavar="NAME",
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
        "Let requests with one routing key go to one worker, whatever the policy; on every node.",
        short="--sticky-sessions",
    )
    key_headers: tuple[str, ...] = words(
        ("x-smg-routing-key",),
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
    manual_assignment: Literal["ring", "random", "min_load"] = choice(
        "ring", "How the policy manual picks a worker for a key it sees for the first time."
    )
    manual_delegate: str = text(
        "power_of_two",
        "Policy for requests without a routing key where the policy is manual.",
        most=64,
        metavar="NAME",
    )

    @field_validator("key_headers")
    @classmethod
    def _headers(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        lower = tuple(name.lower() for name in names)
        for name in lower:
            if not _HEADER.fullmatch(name):
                raise ValueError(f"{name[:64]!r} is not a header name such as x-smg-routing-key")
        return lower

    @field_validator("policy", "manual_delegate")
    @classmethod
    def _name(cls, name: str) -> str:
        # Policies are plug-ins: whether one of that name exists is known where they are loaded.
        if not _POLICY.fullmatch(name):
            raise ValueError(f"{name!r} is not a policy name such as power_of_two")
        return name
