"""Resilience knobs: circuit breaker, retries, overload, wait queue."""

from typing import Literal

from smg_node.config.schema.declaration import Section, choice, number, switch

_PLACES_WHY = "0 refuses at once; each who waits holds a connection and a prompt"
_WAIT_WHY = "below 0.1 s nobody would wait for a place to become free; no client waits for an hour"
_LIFT_WHY = "below 0.1 s all are late at once; after an hour nobody waits any more"


class Breaker(Section):
    """When a worker that fails is passed over, and how it comes back."""

    enabled: bool = switch(True, "Pass workers over that fail or say they are full.")
    window_s: float = number(
        30,
        "Seconds of which calls are looked at.",
        low=1,
        high=3600,
        why="below a second no worker has enough calls; after an hour it is another worker",
        aliases=("--cb-window-duration-secs",),
    )
    samples_min: int = number(
        10,
        "Fewest calls within that time from which anything follows.",
        low=1,
        high=100_000,
        why="at least one call; nothing would follow for a worker with fewer calls than that",
    )
    failure_ratio: float = number(
        0.5,
        "Share of failed calls from which on a worker is passed over.",
        low=0.01,
        high=1,
        why="below one in a hundred every worker fails; above 1 none could",
    )
    connect_failures: int = number(
        5,
        "Calls in a row that found nobody at the other end, and nothing else is needed.",
        low=1,
        high=10_000,
        why="at least one call; a dead worker would get that many requests",
    )
    open_s: float = number(
        5,
        "Seconds a worker is passed over for; twice as many each time it fails again.",
        low=0.1,
        high=3600,
        why="below 0.1 s it is not passed over; an engine restarts within an hour",
        aliases=("--cb-timeout-duration-secs",),
    )
    open_max_s: float = number(
        60,
        "Most seconds a worker is passed over for.",
        low=0.1,
        high=86_400,
        why="below 0.1 s it is not passed over; after a day nobody knows why",
    )
    close_after: int = number(
        2,
        "Good answers, one call at a time, after which a worker gets requests as before.",
        low=1,
        high=1000,
        why="at least one answer; each of the calls is a client's",
        aliases=("--cb-success-threshold",),
    )


class Retry(Section):
    """How often a call that failed is tried again."""

    attempts: int = number(
        3,
        "Calls for one prompt in all, where none of them has answered anything.",
        low=1,
        high=20,
        why="1 never tries again; what fails on 20 workers is not the workers' fault",
    )
    budget_ratio: float = number(
        0.2,
        "Retries of a model, as a share of its requests of the last 10 seconds.",
        low=0,
        high=10,
        why="0 leaves only the few a second; above 10 there is no budget",
    )
    budget_per_s: float = number(
        3,
        "Retries of a model a second beside that share.",
        low=0,
        high=10_000,
        why="0 leaves only the share; above 10,000 there is no budget",
    )
    backoff_s: float = number(
        0.05,
        "Longest pause before the first retry; doubled for each one after it, and drawn from zero on.",
        low=0,
        high=60,
        why="0 tries again at once; no client waits for minutes",
    )
    backoff_max_s: float = number(
        2,
        "Longest pause before any retry.",
        low=0,
        high=600,
        why="0 tries again at once; no client waits longer than 10 minutes",
    )
    continuations: int = number(
        2,
        "How often an answer that has begun goes on at another worker when its own is lost.",
        low=0,
        high=100,
        why="0 ends it with an error; each time a worker computes the prompt anew",
    )


class Overload(Section):
    """When a worker counts as overloaded, and what happens where all are."""

    waiting_max: int = number(
        8,
        "Requests that wait at an engine, from which on others are preferred to it.",
        low=1,
        high=100_000,
        why="at least one request; an engine with more waiting than that is a queue",
    )
    kv_ratio: float = number(
        0.8,
        "Share of an engine's KV memory in use, from which on others are preferred to it.",
        low=0.05,
        high=1,
        why="below 0.05 every engine is overloaded; 1 is all there is",
    )
    shed: bool = switch(
        False, "Refuse requests at once where all workers are overloaded, instead of queueing them."
    )


class Queue(Section):
    """How many wait for a worker where all are full, by `x-smg-priority`."""

    claim_max: Literal["system", "interactive", "default", "bulk"] = choice(
        "interactive", "Most urgent class that a client may claim; who claims more gets this one."
    )
    system_places: int = number(
        64, "Most that wait in the class system.", low=0, high=100_000, why=_PLACES_WHY
    )
    system_timeout_s: float = number(
        30, "Seconds one of the class system waits.", low=0.1, high=3600, why=_WAIT_WHY
    )
    system_lift_s: float = number(
        5,
        "Seconds after which every fifth one called is of the class system, or of others as late.",
        low=0.1,
        high=3600,
        why=_LIFT_WHY,
    )
    interactive_places: int = number(
        256, "Most that wait in the class interactive.", low=0, high=100_000, why=_PLACES_WHY
    )
    interactive_timeout_s: float = number(
        30, "Seconds one of the class interactive waits.", low=0.1, high=3600, why=_WAIT_WHY
    )
    interactive_lift_s: float = number(
        5,
        "Seconds after which every fifth one called is of the class interactive, or of others as late.",
        low=0.1,
        high=3600,
        why=_LIFT_WHY,
    )
    default_places: int = number(
        512,
        "Most that wait in the class default.",
        low=0,
        high=100_000,
        why=_PLACES_WHY,
        aliases=("--queue-size",),
    )
    default_timeout_s: float = number(
        60,
        "Seconds one of the class default waits.",
        low=0.1,
        high=3600,
        why=_WAIT_WHY,
        aliases=("--queue-timeout-secs",),
    )
    default_lift_s: float = number(
        30,
        "Seconds after which every fifth one called is of the class default, or of others as late.",
        low=0.1,
        high=3600,
        why=_LIFT_WHY,
    )
    bulk_places: int = number(
        1024, "Most that wait in the class bulk.", low=0, high=100_000, why=_PLACES_WHY
    )
    bulk_timeout_s: float = number(
        300, "Seconds one of the class bulk waits.", low=0.1, high=3600, why=_WAIT_WHY
    )
    bulk_lift_s: float = number(
        120,
        "Seconds after which every fifth one called is of the class bulk, or of others as late.",
        low=0.1,
        high=3600,
        why=_LIFT_WHY,
    )
