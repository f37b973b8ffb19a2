"""What one engine worked off for another one, until that one takes it: a shelf of prompts by key. Pure.

Somebody asks for a key and hears what is there, at once or later, or that nothing comes any more. What he heard of
is his only when he says `took`; until then he can withdraw, and does so too when he goes away. A thing is taken once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

ASKING_MAX: Final = 65536
"""How many may wait for what is not there; an engine has far fewer requests."""


@dataclass(frozen=True, slots=True)
class Handed:
    """A prompt that is worked off: which one, how many tokens, and how many of them came from a cache.

    `digest` is None for what no other engine handed over: it was found in a store.
    """

    digest: int | None
    tokens: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing comes; `absent` says that nobody was there who could be asked."""

    reason: str
    absent: bool = False


class Asking(Protocol):
    """One who asks, from his side."""

    def took(self, now_s: float) -> None:
        """Make what was heard of one's own."""
        ...

    def withdraw(self, now_s: float) -> None:
        """Want it no more, heard of or not; harmless when it is over."""
        ...


Heard: TypeAlias = Callable[[Asking, Handed | Gone, float], None]
"""Told once; it may be told before the call that asks has returned."""


class Courier(Protocol):
    """Who carries questions to other engines' shelves."""

    def ask(self, host: str, port: int, key: str, heard: Heard, now_s: float) -> Asking:
        """Ask the engine at an address for a key."""
        ...


@dataclass(slots=True)
class Thing:
    """Something on the shelf. `taken` and `left` are told when somebody takes it, or spoils it by leaving."""

    handed: Handed
    taken: Callable[[float], None]
    left: Callable[[float], None] | None = None
    """None: whoever leaves leaves it as it was, and it can be asked for again."""


class Waiter:
    """Somebody who asked one shelf for one key."""

    __slots__ = ("_heard", "_shelf", "heard_of", "key", "over")

    def __init__(self, shelf: "Shelf", key: str, heard: Heard) -> None:
        self._shelf = shelf
        self._heard = heard
        self.key = key
        self.heard_of: Thing | None = None
        self.over = False

    def hear(self, what: Handed | Gone, now_s: float) -> None:
        """Be told."""
        self.over = isinstance(what, Gone)
        self._heard(self, what, now_s)

    def took(self, now_s: float) -> None:
        """Make what was heard of one's own."""
        if not self.over:
            self.over = True
            self._shelf.taken(self, now_s)

    def withdraw(self, now_s: float) -> None:
        """Want it no more."""
        if not self.over:
            self.over = True
            self._shelf.withdrawn(self, now_s)


class Shelf:
    """What an engine keeps for others. `patient`: who asks too early waits, instead of hearing that it is gone.

    `deserted` is told the key that somebody who waited for it gave up before it was there.
    """

    def __init__(self, *, patient: bool, deserted: Callable[[str, float], None]) -> None:
        self._patient = patient
        self._deserted = deserted
        self._things: dict[str, Thing] = {}
        self._waiters: dict[str, Waiter] = {}

    def __len__(self) -> int:
        """How many things are on it."""
        return len(self._things)

    @property
    def asked_for(self) -> int:
        """How many wait for something, or heard of it and did not take it yet."""
        return len(self._waiters)

    def __contains__(self, key: str) -> bool:
        """Whether something is there under a key."""
        return key in self._things

    def put(self, key: str, thing: Thing, now_s: float) -> None:
        """Put something there, and tell whoever waits for it."""
        assert key not in self._things, "a key is used once at a time"
        self._things[key] = thing
        waiter = self._waiters.get(key)
        if waiter is not None:
            waiter.heard_of = thing
            waiter.hear(thing.handed, now_s)

    def ask(self, key: str, heard: Heard, now_s: float) -> Asking:
        """Ask for a key; see the module."""
        waiter = Waiter(self, key, heard)
        thing = self._things.get(key)
        if key in self._waiters:
            waiter.hear(Gone("somebody else asked for it"), now_s)
        elif thing is None and not self._patient:
            waiter.hear(Gone("it is not here, or not any more"), now_s)
        elif len(self._waiters) >= ASKING_MAX:
            waiter.hear(Gone("too many wait"), now_s)
        else:
            self._waiters[key] = waiter
            if thing is not None:
                waiter.heard_of = thing
                waiter.hear(thing.handed, now_s)
        return waiter

    def taken(self, waiter: Waiter, now_s: float) -> None:
        """Give away what somebody heard of; see `Waiter.took`."""
        del self._waiters[waiter.key]
        thing = self._things.get(waiter.key)
        assert waiter.heard_of is thing is not None, "what is taken is there"
        del self._things[waiter.key]
        thing.taken(now_s)

    def withdrawn(self, waiter: Waiter, now_s: float) -> None:
        """Forget somebody who went away; see `Waiter.withdraw`."""
        del self._waiters[waiter.key]
        thing = waiter.heard_of
        if thing is None:
            self._deserted(waiter.key, now_s)
        elif thing.left is not None:
            del self._things[waiter.key]
            thing.left(now_s)

    def drop(self, key: str, reason: str, now_s: float, *, only: Thing | None = None) -> None:
        """Take something away, and tell who waits for that key that nothing comes. Nothing but `only`, if given."""
        thing = self._things.get(key)
        if only is not None and thing is not only:
            return
        self._things.pop(key, None)
        waiter = self._waiters.pop(key, None)
        if waiter is not None:
            waiter.hear(Gone(reason), now_s)

    def clear(self, reason: str, now_s: float) -> None:
        """Take everything away."""
        for key in [*self._things, *self._waiters]:
            self.drop(key, reason, now_s)


class Exchange:
    """A courier between engines of one process, and the addresses they are asked at: for virtual time."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int], Callable[[str, Heard, float], Asking]] = {}

    def open(self, host: str, port: int, asked: Callable[[str, Heard, float], Asking]) -> None:
        """Let an address be answered."""
        self._asked[host, port] = asked

    def ask(self, host: str, port: int, key: str, heard: Heard, now_s: float) -> Asking:
        """Ask whoever is at an address."""
        asked = self._asked.get((host, port))
        if asked is not None:
            return asked(key, heard, now_s)
        nobody = Nothing()
        heard(nobody, Gone("nobody is there", absent=True), now_s)
        return nobody


class Nothing:
    """One who asks nobody."""

    def took(self, now_s: float) -> None:
        """Take nothing."""

    def withdraw(self, now_s: float) -> None:
        """Want nothing."""
