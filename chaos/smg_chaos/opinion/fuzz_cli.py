"""Fuzzer of parsers (`smg-chaos parse-fuzz`): damaged answers of every format.

What a model prints is never quite what its format says. Answers of every known format are
generated, damaged at random, and read: whole, by characters and in random chunks (`laws` has what
must be true of all of them).
"""

import os
import sys
import time
from typing import Annotated, Final

import typer

from smg_chaos.opinion.fuzzing import Tally, run, tasks
from smg_chaos.opinion.subjects import subjects

_EPILOG: Final = """
Of every damaged answer: no exception and no endless loop; the same pieces
and ids however it is cut; behind every call its arguments; and where there
is no call, all text comes back but for the format's own tokens.

What breaks a law is made as small as it gets and printed with the command
that finds it again. Its first line and text can go into a transcript in
tests/transcripts/parsers (but for `expect`, which those do not know).

Exit code 1 if a law was broken. The same seed does the same damage, whatever
the number of jobs; with --seconds it only stops sooner.

Examples:

$ smg-chaos parse-fuzz

$ smg-chaos parse-fuzz --format tools:hermes --format joint:harmony --mutations 50000

$ smg-chaos parse-fuzz --seed 7 --seconds 60 --jobs 2
"""
_SHOWN_MAX: Final = 40

app: Final = typer.Typer(add_completion=False)


class Line:
    """A progress line that moves on a terminal; elsewhere it is printed now and then."""

    def __init__(self, mutations: int) -> None:
        self._mutations = mutations
        self._moves = sys.stderr.isatty()
        self._began_s = self._shown_s = time.monotonic()

    def __call__(self, total: Tally) -> None:
        """Show the progress."""
        now_s = time.monotonic()
        if now_s - self._shown_s < (0.2 if self._moves else 15.0):
            return
        self._shown_s = now_s
        each_s = total.mutations / (now_s - self._began_s)
        text = f"{total.mutations:,} of {self._mutations:,}, {each_s:,.0f}/s, {total.broken.total()} broken"
        print(f"\r{text:<60}" if self._moves else text, end="" if self._moves else "\n", file=sys.stderr, flush=True)  # fmt: skip


@app.command(epilog=_EPILOG)
def parse_fuzz(
    mutations: Annotated[int, typer.Option(help="how many damaged answers", min=1)] = 1_000_000,
    seed: Annotated[int, typer.Option(help="which ones", min=0)] = 1,
    jobs: Annotated[int, typer.Option(help="processes; 0 is one per core", min=0)] = 0,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="only this one (repeatable): NAME, or KIND:NAME, see --list"),
    ] = None,
    seconds: Annotated[float, typer.Option(help="begin nothing more after this; 0 is no limit", min=0)] = 0,
    listing: Annotated[bool, typer.Option("--list", help="print the formats' names and end")] = False,
) -> None:  # fmt: skip
    """Damage answers of every format a million times: none may break a law of the parsers."""
    names = named(formats or [])
    if listing:
        print("\n".join(names))
        return
    began_s = time.monotonic()
    total = run(
        tasks(seed, mutations, names),
        jobs=jobs or len(os.sched_getaffinity(0)),
        seconds_max=seconds or float("inf"),
        progress=Line(mutations),
    )
    print("\n".join(report(total, time.monotonic() - began_s, len(names))))
    raise typer.Exit(1 if total.broken else 0)


def named(formats: list[str]) -> list[str]:
    """Return the full names of the formats that were asked for; of all of them if none was."""
    known = subjects()
    found: list[str] = []
    for asked in formats:
        fitting = [name for name in known if asked in (name, name.partition(":")[2])]
        if not fitting:
            raise typer.BadParameter(
                f"nobody knows {asked}; --list shows all", param_hint="--format"
            )
        found += fitting
    return list(dict.fromkeys(found)) or list(known)


def report(total: Tally, spent_s: float, formats: int) -> list[str]:
    """Return the figures and the findings as text."""
    lines: list[str] = []
    for finding in total.findings[:_SHOWN_MAX]:
        lines += [*finding.lines(), ""]
    lines += [f"{count:7,} × {law}" for law, count in total.broken.most_common()]
    each = total.characters / total.mutations if total.mutations else 0
    calls = 100 * total.with_calls / total.mutations if total.mutations else 0
    return [
        *lines,
        f"{total.mutations:,} damaged answers of {formats} formats in {spent_s:.0f} s "
        f"({total.mutations / spent_s:,.0f}/s), {each:.0f} characters each, about {calls:.0f} % with calls",
        f"long ones: {total.long_us:.1f} µs per character at most ({total.longest or 'none'})",
        f"{total.broken.total()} broke a law",
    ]
