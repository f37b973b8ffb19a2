"""Breakers without jitter, and how to open one."""

from smg_node.fleet.health.circuit_breaker import Breaker, BreakerOptions, State

OPTIONS = BreakerOptions()


class Even:
    """Chance that is always in the middle: no jitter."""

    def random(self) -> float:
        return 0.5

    def getrandbits(self, k: int, /) -> int:
        return 0


def breaker(options: BreakerOptions = OPTIONS) -> Breaker:
    return Breaker(options, Even())


def fail(one: Breaker, now_s: float, times: int = 1, *, connect: bool = False) -> None:
    for _ in range(times):
        one.failure(now_s, connect=connect)


def opened(now_s: float = 0.0) -> Breaker:
    one = breaker()
    fail(one, now_s, 10)
    assert one.state(now_s) is State.OPEN
    return one
