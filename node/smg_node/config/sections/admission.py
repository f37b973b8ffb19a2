"""Admission knobs: wait for rights where a cluster limit has too little left, audit of rights."""

from typing import Literal

from smg_node.config.schema.declaration import Section, choice, number, switch


class Admission(Section):
    """What a request does that finds too little left of a limit."""

    wait_max_s: float = number(
        0.06,
        "Most seconds a request waits for rights that another node may still have; where a hundred times as much is left as it"
        " needs, it may be a second.",
        low=0,
        high=1,
        why="0 refuses at once; who has rights answers within a round trip, or not at all",
    )
    unpriced: Literal["refuse", "allow"] = choice(
        "refuse",
        "What becomes of a request that a limit on cost applies to and that only vendors' models without a price could answer:"
        " `refuse` says so, `allow` lets it through, and what it costs is charged to nobody.",
    )
    audit: bool = switch(
        True,
        "Reckon up every window of a limit when it is over, and say loudly if it does not add up.",
    )
