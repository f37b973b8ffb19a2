"""Help pages of `smg-node`: `--help` and `--help-all`."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from smg_node.config.schema.knob import LIST_KINDS, Group, Knob, Schema
from smg_node.config.sources.command_line import ACTIONS, CONFIG_FLAG

_WIDTH_MIN = 60  # narrower, and every second word is alone on its line
_WIDTH_MAX = 110  # longer lines are hard to read
_FLAG_COLUMN = 26

_CONFIG_SAYS: Final = "YAML file with settings (also SMG_CONFIG)."

_EXAMPLES: Final = (
    ("Try it: two simulated engines, one node", "smg-node --demo"),
    (
        "One address in front of two engines",
        "smg-node --worker grpc://10.0.0.7:50051 --worker grpc://10.0.0.8:50051",
    ),
    (
        "Prompts on one engine, answers on the other",
        "smg-node --prefill grpc://10.0.0.7:50051 --decode grpc://10.0.0.8:50051",
    ),
    (
        "One of several nodes that are a cluster",
        "smg-node --mesh-key mesh.key --join 10.0.0.1 10.0.0.2 --worker grpc://10.0.0.7:50051",
    ),
    ("From a file; a flag outweighs it", "smg-node --config smg.yaml --log-level debug"),
)

_ORDER: Final = (
    "A value given twice: default, then file, environment, flag; the last one counts."
    " Unknown names and values out of range are refused."
    " Exit codes: 0 stopped as asked, 1 failed, 2 bad usage or settings, 3 another node has its name."
    " SIGTERM or Ctrl-C drains: answers may finish. A second one stops."
)


def render_help(schema: Schema, *, version: str, width: int) -> str:
    """Return the flags that matter most, the sections, and examples, at most `width` columns wide."""
    page = _Page(width)
    page.text(f"smg-node {version}: one HTTP address in front of many inference engines.")
    page.heading("Usage")
    page.lines("  smg-node [flags]", "  smg-node --help-all      every flag")
    page.heading("Essential")
    for knob in _essential(schema):
        page.entry(f"{knob.short} {_metavar(knob)}".rstrip(), _says(knob))
    page.entry(f"{CONFIG_FLAG} FILE", _CONFIG_SAYS)
    page.heading("Ask and leave")
    for action, says in ACTIONS.items():
        page.entry(action, says)
    page.heading("Names known from other gateways; all of them in --help-all")
    page.text(", ".join(_aliases(schema)), indent=2)
    page.heading("Sections")
    page.text(
        "Every knob has a flag, an environment name and a place in the file: --stream.keepalive-s 20,"
        " SMG_STREAM__KEEPALIVE_S=20, and keepalive_s: 20 below stream:.",
        indent=2,
    )
    shown = dict(_sections(schema))
    for group in shown:
        # What lies below another section is described there, and by --help-all.
        if not any(
            group.path[: len(other.path)] == other.path for other in shown if other != group
        ):
            count = sum(
                len(knobs)
                for of, knobs in shown.items()
                if of.path[: len(group.path)] == group.path
            )
            page.entry(f"--{group.dotted}.*", f"{group.says} ({count})")
    _ending(page)
    return page.render()


def render_help_all(schema: Schema, *, version: str, width: int) -> str:
    """Return every flag once, by section, at most `width` columns wide."""
    page = _Page(width)
    page.text(f"smg-node {version}: every flag. The essential ones and examples: --help")
    page.heading("node: what it is called and where it lives")
    for knob in (knob for knob in schema.knobs if len(knob.path) == 1):
        page.entry(f"{knob.long_flag} {_metavar(knob)}".rstrip(), _says(knob))
    page.entry(f"{CONFIG_FLAG} FILE", _CONFIG_SAYS)
    for group, knobs in _sections(schema):
        page.heading(f"{group.dotted}: {group.says}")
        for knob in knobs:
            also = [flag for flag in knob.flags if flag != knob.long_flag]
            says = f"{_says(knob)} Also {', '.join(also)}." if also else _says(knob)
            page.entry(f"{knob.long_flag} {_metavar(knob)}".rstrip(), says)
    page.heading("Ask and leave")
    for action, says in ACTIONS.items():
        page.entry(action, says)
    _ending(page)
    return page.render()


class _Page:
    """Lines of at most `width` columns."""

    def __init__(self, width: int) -> None:
        self._width = min(max(width, _WIDTH_MIN), _WIDTH_MAX)
        self._lines: list[str] = []

    def lines(self, *lines: str) -> None:
        self._lines += lines

    def heading(self, words: str) -> None:
        self._lines += ["", *self._wrap(words, "", "  ")]

    def text(self, words: str, *, indent: int = 0) -> None:
        self._lines += self._wrap(words, " " * indent, " " * indent)

    def entry(self, flag: str, says: str) -> None:
        """A flag on the left, what it does on the right, or below where the flag is long."""
        indent = " " * _FLAG_COLUMN
        left = f"  {flag}"
        if len(left) + 2 > _FLAG_COLUMN:
            self._lines += [left, *self._wrap(says, indent, indent)]
        else:
            self._lines += self._wrap(says, left.ljust(_FLAG_COLUMN), indent)

    def render(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _wrap(self, words: str, first: str, rest: str) -> list[str]:
        return textwrap.wrap(
            words,
            self._width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _essential(schema: Schema) -> list[Knob]:
    """Return the knobs with a short flag: workers first, as without one nothing is served."""
    found = [knob for knob in schema.knobs if knob.short]
    return sorted(found, key=lambda knob: (knob.path[0] != "workers", len(knob.path) == 1))


def _aliases(schema: Schema) -> Iterator[str]:
    """Return the names that others know; of a section below another one only the first, for all are in --help-all."""
    begun: set[tuple[str, ...]] = set()
    for knob in schema.knobs:
        section = knob.path[:-1]
        known = [flag for flag in knob.flags if flag not in (knob.short, knob.long_flag)]
        if known and len(section) > 1:
            known = [] if section in begun else [*known[:-1], f"{known[-1]} …"]
            begun.add(section)
        yield from known


def _sections(schema: Schema) -> Iterator[tuple[Group, Sequence[Knob]]]:
    """Groups that hold knobs, with them; the root's own come first elsewhere."""
    for group in schema.groups:
        knobs = [knob for knob in schema.knobs if group.path and knob.path[:-1] == group.path]
        if knobs:
            yield group, knobs


def _metavar(knob: Knob) -> str:
    return f"{knob.metavar} …" if knob.kind in LIST_KINDS else knob.metavar


def _says(knob: Knob) -> str:
    """The sentence of a knob with its default and range."""
    silent = knob.default == "none" or (knob.kind == "switch" and knob.default == "false")
    facts = [] if silent else [f"default {knob.default}"]
    facts += [knob.bounds] if knob.low is not None else []
    return f"{knob.says} [{'; '.join(facts)}]" if facts else knob.says


def _ending(page: _Page) -> None:
    page.heading("Examples")
    for says, command in _EXAMPLES:
        page.lines(f"  # {says}", f"  {command}")
    page.lines("")
    page.text(_ORDER)
