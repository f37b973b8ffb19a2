"""Lifecycle knobs: readiness after the start, drain before the end."""

from smg_node.config.schema.declaration import Section, number


class Readiness(Section):
    """When `/readiness` says 200."""

    min_workers: int = number(
        1,
        "Ready workers the node needs before it is ready itself.",
        low=0,
        high=4096,
        why="0 is ready without any; there are at most 4,096 static workers",
    )


class Drain(Section):
    """How the node leaves on SIGTERM: unready, still serving, then done."""

    settle_s: float = number(
        5,
        "Seconds of normal service after readiness turned 503, for balancers to notice;"
        " where work still comes, up to three times as long.",
        low=0,
        high=3600,
        why="0 closes at once; no balancer needs an hour",
    )
    grace_s: float = number(
        180,
        "Seconds running answers may take to finish after drain.settle_s; what is left gets an error.",
        low=0,
        high=86_400,
        why="0 cuts them off at once; no answer runs longer than a day",
        aliases=("--shutdown-grace-period-secs",),
    )
