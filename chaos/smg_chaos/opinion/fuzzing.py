"""Fuzzing of parsers: rounds of damaged answers of one format each, and a minimal text for each
broken law.

A round's answers follow from the seed, the format and the round's number alone, so that a finding
is reproduced with that format alone and any number of processes.
"""

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Final

from smg_chaos.opinion.laws import Breach, Open, breach, seconds, shrunk
from smg_chaos.opinion.mutating import mutated
from smg_chaos.opinion.subjects import Setting, subjects
from smg_node.core.generation.pieces import Call

ROUND: Final = 250
"""Mutations of one format before it is another one's turn."""
_POOL: Final = 12
"""Answers of a round; its mutations begin with one and take parts of others."""
_HARD: Final = 16
"""Cuttings that are tried of a text while it is made smaller."""
_KEPT_MAX: Final = 2
"""Findings of one law that a round makes smaller; the others are only counted."""
_LONG: Final = 20_000
_LONG_EVERY: Final = 8
_CHUNK: Final = 5


@dataclass(frozen=True, slots=True)
class Task:
    """One round of one format, by its name in `subjects`."""

    seed: int
    name: str
    number: int
    mutations: int


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken law, the smallest text found that breaks it, and the command that reproduces it."""

    task: Task
    setting: Setting
    text: str
    breach: Breach

    def lines(self) -> list[str]:
        """Return it as lines of text."""
        task = self.task
        mutations = task.number * ROUND + task.mutations
        return [
            f"{task.name}: {self.breach.law}",
            f"    again: smg-chaos parse-fuzz --seed {task.seed} --format {task.name} --mutations {mutations}",
            f"    {self.setting}",
            f"    text   {self.text!r}",
            *(f"    {line}" for line in self.breach.seen.splitlines()),
        ]


@dataclass(slots=True)
class Tally:
    """Results of one round or many. `long_us` is the time a character took of the slowest long
    text.
    """

    mutations: int = 0
    characters: int = 0
    with_calls: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    long_us: float = 0.0
    longest: str = ""

    def add(self, other: "Tally") -> None:
        """Add another tally."""
        self.mutations += other.mutations
        self.characters += other.characters
        self.with_calls += other.with_calls
        self.broken.update(other.broken)
        self.findings += other.findings
        if other.long_us > self.long_us:
            self.long_us, self.longest = other.long_us, other.longest


def play(task: Task) -> Tally:
    """Return the results of one round."""
    subject = subjects()[task.name]
    rng = Random(f"{task.seed}/{task.name}/{task.number}")
    tally = Tally()
    pool: list[str] = []
    settings: list[Setting] = []
    for _ in range(_POOL):
        settings.append(subject.setting(rng))
        pool.append(subject.answer(settings[-1], rng))
    for at in range(task.mutations):
        setting = settings[at % _POOL]
        text = mutated(pool[at % _POOL], rng, subject.marks, pool)
        _look(task, setting, text, tally)
        if at % _POOL == 0:
            tally.with_calls += _calls(setting.parser, text) * _POOL
    if task.number % _LONG_EVERY == 0:
        _look_long(task.name, settings[0], mutated(pool[0], rng, subject.marks, pool), tally)
    return tally


def _look(task: Task, setting: Setting, text: str, tally: Tally) -> None:
    tally.mutations += 1
    tally.characters += len(text)
    found = breach(text, setting.parser, setting.losses)
    if found is None:
        return
    tally.broken[f"{task.name}: {found.law}"] += 1
    if tally.broken[f"{task.name}: {found.law}"] <= _KEPT_MAX:
        least, seen = smallest(text, setting, found)
        tally.findings.append(Finding(task, setting, least, seen))


def smallest(text: str, setting: Setting, found: Breach) -> tuple[str, Breach]:
    """Return the smallest text like `text` that breaks the same law, and how it does."""

    def fails(shorter: str) -> bool:
        seen = breach(shorter, setting.parser, setting.losses, cuttings=_HARD)
        return seen is not None and seen.law == found.law

    # An endless loop takes its whole time with every try.
    least = shrunk(text, fails, tries=12 if found.law == "endless" else 3000)
    return least, breach(least, setting.parser, setting.losses, cuttings=_HARD) or found


def _calls(parser: Open, text: str) -> bool:
    with suppress(Exception):
        return any(isinstance(piece, Call) for piece in parser().feed(text))
    return False


def _look_long(name: str, setting: Setting, text: str, tally: Tally) -> None:
    """Note what a character costs of a long text: the answer over and over."""
    if not text:
        return
    long = text * (_LONG // len(text) + 1)
    with suppress(Exception):
        spent_us = 1e6 * seconds(setting.parser(), long, _CHUNK) / len(long)
        if spent_us > tally.long_us:
            tally.long_us, tally.longest = spent_us, name


def tasks(seed: int, mutations: int, names: Sequence[str]) -> Iterator[Task]:
    """Yield rounds, the formats in turn, until there are so many mutations."""
    number = 0
    while True:
        for name in names:
            size = min(ROUND, mutations)
            if size <= 0:
                return
            mutations -= size
            yield Task(seed, name, number, size)
        number += 1


def run(
    todo: Iterator[Task],
    *,
    jobs: int,
    seconds_max: float,
    progress: Callable[[Tally], None],
) -> Tally:
    """Play all rounds, `jobs` at a time, or those that can be begun in `seconds_max`."""
    until_s = time.monotonic() + seconds_max
    total = Tally()
    for tally in _each(todo, jobs, until_s):
        total.add(tally)
        progress(total)
    return total


def _each(todo: Iterator[Task], jobs: int, until_s: float) -> Iterator[Tally]:
    if jobs <= 1:
        for task in todo:
            yield play(task)
            if time.monotonic() > until_s:
                return
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        # A few rounds ahead of each process, so that a limit of time ends the run soon.
        while time.monotonic() < until_s and (some := list(islice(todo, jobs * 4))):
            yield from pool.map(play, some)
