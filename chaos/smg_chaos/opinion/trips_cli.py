"""Round trips (`smg-chaos round-trips`): answers through published chat templates, and back through
our parsers.

Templates are third-party files and are not kept here: they are read from a folder, or out of a
package.
"""

import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

import typer

from smg_chaos.opinion.known_exceptions import EXCUSED
from smg_chaos.opinion.past_answers import ANSWERS
from smg_chaos.opinion.round_trips import Journey, Trip, travel

_EPILOG: Final = """
Every template prints each of a few answers as the last turn of a
conversation: text, a thought, one call, two, a call without arguments, one
with code in them, with what looks like markers, with every type. What stands behind the prompt is read by characters, with the formats that
the template and the file's name are recognised by, and compared: calls,
arguments, text, thought.

\b
equal      all came back that the template shows; the rest is noted
no calls   the template shows no calls: nothing of them can come back
refuses    the template refuses calls, with its own message
excused    something came back otherwise for a known reason, which is told
DIFFERENT  something came back otherwise; the reason is ours to find

Exit code 1 if a template is DIFFERENT. Excuses are answers of one template
for which smg_chaos/opinion/known_exceptions.py has a reason.

The templates: some seventy published ones come with the source distribution
of llama-cpp-python, in vendor/llama.cpp/models/templates. To get it:

$ pip download --no-deps --no-binary :all: llama-cpp-python

$ smg-chaos round-trips --package llama_cpp_python-*.tar.gz

Or any folder with files that end in .jinja, each named like its model:

$ smg-chaos round-trips --templates my-templates --only qwen --details
"""
_HOW: Final = (
    "no templates were named: --templates FOLDER, or --package FILE.tar.gz, which "
    "`pip download --no-deps --no-binary :all: llama-cpp-python` fetches"
)
_INSIDE: Final = "vendor/llama.cpp/models/templates"
_SHOWN_MAX: Final = 600

app: Final = typer.Typer(add_completion=False)


@app.command(name="round-trips", epilog=_EPILOG)
def round_trips(
    templates: Annotated[
        Path | None, typer.Option(help="a folder of *.jinja files", exists=True, file_okay=False)
    ] = None,
    package: Annotated[
        Path | None,
        typer.Option(help="a source distribution that holds them", exists=True, dir_okay=False),
    ] = None,
    only: Annotated[str, typer.Option(help="those with this in their name")] = "",
    details: Annotated[bool, typer.Option(help="also show each answer that came back otherwise, and its text")] = False,
) -> None:  # fmt: skip
    """Show answers with published chat templates, and read them back with our parsers."""
    if (templates is None) == (package is None):
        raise typer.BadParameter(_HOW if templates is None else "one of --templates and --package")
    texts = in_folder(templates) if templates is not None else in_package(package or Path())
    found = [
        travel(name, text, EXCUSED.get(name, {}))
        for name, text in sorted(texts, key=lambda each: each[0].lower())
        if only.lower() in name.lower()
    ]
    if not found:
        raise typer.BadParameter("there are no such templates (*.jinja)")
    print("\n".join(table(found, details=details)))
    raise typer.Exit(1 if any(each.verdict == "DIFFERENT" for each in found) else 0)


def in_folder(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every template in a folder."""
    for path in folder.glob("*.jinja"):
        yield path.stem, path.read_text(encoding="utf-8")


def in_package(package: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every template in a source distribution; nothing is unpacked."""
    try:
        with tarfile.open(package) as archive:
            for member in archive:
                path = PurePosixPath(member.name)
                if path.suffix != ".jinja" or not str(path.parent).endswith(_INSIDE):
                    continue
                file = archive.extractfile(member)
                if file is not None:
                    yield path.stem, file.read().decode("utf-8")
    except tarfile.TarError as error:
        raise typer.BadParameter(f"{package}: {error}", param_hint="--package") from error


def table(found: Sequence[Journey], *, details: bool) -> list[str]:
    """Return the verdicts, a row for each template with its notes below it, and the counts."""
    wide = max(len(each.name) for each in found)
    lines: list[str] = []
    for each in found:
        formats = " + ".join(dict.fromkeys((each.reasoning, each.tools)))
        lines.append(f"{each.name:{wide}}  {each.verdict:9}  {formats}")
        lines += [f"    {note}" for note in each.notes]
        if details:
            lines += [line for trip in each.trips if trip.wrong for line in _both(trip)]
    counts = Counter(each.verdict for each in found)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return [*lines, f"{len(found)} templates, {len(ANSWERS)} answers each: {told}"]


def _both(trip: Trip) -> Iterator[str]:
    yield f"      {trip.kind}: {_short(trip.printed)}"
    for part in trip.wrong:
        if trip.said is not None and trip.heard is not None:
            yield f"        {part} said  {_short(trip.said[part])}"
            yield f"        {part} heard {_short(trip.heard[part])}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
