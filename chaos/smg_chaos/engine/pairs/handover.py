"""Handover of computed prompts: a shelf by key, from which another engine takes each prompt once.
Pure.

An engine asks for a key and is told that the prompt is there, at once or later, or that it will not
come. The prompt belongs to the asker only after `took`; until then the asker can withdraw, and its
disconnect does so too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

ASKING_MAX: Final = 65536
"""How many may wait for what is not there; an engine has far fewer requests."""


@dataclass(frozen=True, slots=True)
class Handed:
    """A computed prompt: its digest, its number of tokens, and how many of them came from a cache.

    `digest` is None for what no other engine handed over: it was found in a store. `pictures` are digests of those that
    were seen in it.
    """

    digest: int | None
    tokens: int
    cached: int = 0
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing comes; `absent` says that no engine could be reached."""

    reason: str
    absent: bool = False


class Asking(Protocol):
    """One question to a shelf, from the asker's side."""

    def took(self, now_s: float) -> None:
        """Take what was announced: it is the asker's from now on."""
        ...

    def withdraw(self, now_s: float) -> None:
        """Withdraw the question, announced or not; harmless when it is over."""
        ...


Heard: TypeAlias = Callable[[Asking, Handed | Gone, float], None]
"""Told once; it may be told before the call that asks has returned."""


class Courier(Protocol):
    """Carries questions to other engines' shelves."""

    def ask(self, host: str, port: int, key: str, heard: Heard, now_s: float) -> Asking:
        """Ask the engine at an address for a key."""
        ...


@dataclass(slots=True)
class Thing:
    """A prompt on the shelf. `taken` and `left` are called when an asker takes it, or spoils it by
    disconnecting.
    """

    handed: Handed
    taken: Callable[[float], None]
    left: Callable[[float], None] | None = None
    """None: whoever leaves leaves it as it was, and it can be asked for again."""


class Waiter:
    """An asker of one shelf for one key."""

    __slots__ = ("_heard", "_shelf", "heard_of", "key", "over")

    def __init__(self, shelf: "Shelf", key: str, heard: Heard) -> None:
        self._shelf = shelf
        self._heard = heard
        self.key = key
        self.heard_of: Thing | None = None
        self.over = False

    def hear(self, what: Handed | Gone, now_s: float) -> None:
        """Receive the announcement."""
        self.over = isinstance(what, Gone)
        self._heard(self, what, now_s)

    def took(self, now_s: float) -> None:
        """Take what was announced: it is the asker's from now on."""
        if not self.over:
            self.over = True
            self._shelf.taken(self, now_s)

    def withdraw(self, now_s: float) -> None:
        """Withdraw the question."""
        if not self.over:
            self.over = True
            self._shelf.withdrawn(self, now_s)


class Shelf:
    """Computed prompts that an engine keeps for others. `patient`: an early question waits, instead
    of being told it is gone.

    `deserted` is called with the key of a question that was withdrawn before its prompt was there.
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
        """How many askers wait for a prompt, or were told of it and have not taken it yet."""
        return len(self._waiters)

    def __contains__(self, key: str) -> bool:
        """Whether something is there under a key."""
        return key in self._things

    def put(self, key: str, thing: Thing, now_s: float) -> None:
        """Put a prompt under a key, and announce it to those that wait for it."""
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
        """Hand the announced prompt over; see `Waiter.took`."""
        del self._waiters[waiter.key]
        thing = self._things.get(waiter.key)
        assert waiter.heard_of is thing is not None, "what is taken is there"
        del self._things[waiter.key]
        thing.taken(now_s)

    def withdrawn(self, waiter: Waiter, now_s: float) -> None:
        """Remove an asker that disconnected; see `Waiter.withdraw`."""
        del self._waiters[waiter.key]
        thing = waiter.heard_of
        if thing is None:
            self._deserted(waiter.key, now_s)
        elif thing.left is not None:
            del self._things[waiter.key]
            thing.left(now_s)

    def drop(self, key: str, reason: str, now_s: float, *, only: Thing | None = None) -> None:
        """Remove a prompt, and tell the askers of that key that nothing comes. Nothing but `only`,
        if given.
        """
        thing = self._things.get(key)
        if only is not None and thing is not only:
            return
        self._things.pop(key, None)
        waiter = self._waiters.pop(key, None)
        if waiter is not None:
            waiter.hear(Gone(reason), now_s)

    def clear(self, reason: str, now_s: float) -> None:
        """Remove everything."""
        for key in [*self._things, *self._waiters]:
            self.drop(key, reason, now_s)


class Exchange:
    """A courier between engines of one process, with the addresses they are asked at: for virtual
    time.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int], Callable[[str, Heard, float], Asking]] = {}

    def open(self, host: str, port: int, asked: Callable[[str, Heard, float], Asking]) -> None:
        """Register the engine at an address."""
        self._asked[host, port] = asked

    def ask(self, host: str, port: int, key: str, heard: Heard, now_s: float) -> Asking:
        """Ask the engine at an address."""
        asked = self._asked.get((host, port))
        if asked is not None:
            return asked(key, heard, now_s)
        nobody = Nothing()
        heard(nobody, Gone("nobody is there", absent=True), now_s)
        return nobody


class Nothing:
    """A question that is sent to no engine."""

    def took(self, now_s: float) -> None:
        """Do nothing."""

    def withdraw(self, now_s: float) -> None:
        """Do nothing."""
