"""Knobs of the choice of a worker."""

import re

from pydantic import field_validator

from smg_node.config.declare import Section, number, text

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

    @field_validator("policy")
    @classmethod
    def _name(cls, name: str) -> str:
        # Policies are plug-ins: whether one of that name exists is known where they are loaded.
        if not _POLICY.fullmatch(name):
            raise ValueError(f"{name!r} is not a policy name such as power_of_two")
        return name
