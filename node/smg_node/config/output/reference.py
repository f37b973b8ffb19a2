"""Reference page `deploy/reference/configuration.md`, made from the declarations of the knobs.

`python -m smg_node.config.output.reference` prints the page, or with `--write FILE` writes it. A
test compares the file with what this prints.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from smg_node.config.schema.knob import ANY_NAME, Group, Knob, Schema
from smg_node.config.schema.live_keys import LIVE
from smg_node.config.settings import Settings
from smg_node.config.sources.command_line import ACTIONS, CONFIG_FLAG

_HEAD: Final = """\
# Configuration

Generated from the declarations in `smg_node/config` by `make reference`; do not edit.

Every knob has one declaration and three spellings: a flag, an environment variable and a place in a YAML file.

| | |
|---|---|
| Order | default, then file (`--config FILE` or `SMG_CONFIG`), then environment, then flags; the last one that says something counts |
| Environment | `SMG_` and the path in capitals, `__` between levels; lists are separated by commas or blanks, or are JSON; `SMG_MODELS` is a JSON object |
| Flags | hyphens or underscores, `--flag value` or `--flag=value`; a switch needs no value, and `--no-` in front turns it off; a list takes every word up to the next flag, and can be repeated |
| File | YAML, one level a line; text that looks like a number, a boolean or a list needs quotes |
| Refused | unknown names anywhere (with the nearest known one), keys given twice, values out of range; all problems are reported in one go, exit code 2 |
| Live | may be set for the whole cluster while it runs, which goes before all of the above: `smg-admin config set KEY VALUE`, where KEY is the knob, and `models/NAME/KNOB` for those of a model |
| Units | the last word of a name: `_s` seconds (fractions allowed), `_bytes` bytes |
| Addresses | `host:port`; `:port` is every IPv4 interface; IPv6 in brackets, `[::1]:30000`; port 0 is any free one |
"""

_TABLE_HEAD: Final = """\
| Knob | Flags | Environment | Range | Default | Live | Meaning |
|---|---|---|---|---|---|---|"""
_LIVE: Final = frozenset(key.replace("/", ".") for key in LIVE)


def render_configuration_reference() -> str:
    """Return the whole page as Markdown."""
    return "\n".join(_lines(Schema(Settings)))


def _lines(schema: Schema) -> Iterator[str]:
    yield _HEAD
    yield "## Asking `smg-node`\n"
    yield "| Flag | Meaning |\n|---|---|"
    yield f"| `{CONFIG_FLAG} FILE` | Read settings from this YAML file; `SMG_CONFIG` names it as well. |"
    for action, says in ACTIONS.items():
        yield f"| `{action}` | {says} |"
    for group in schema.groups:
        knobs = [knob for knob in schema.knobs if knob.path[:-1] == group.path]
        if knobs:
            yield ""
            yield from _section(group, knobs)
    yield ""


def _section(group: Group, knobs: Sequence[Knob]) -> Iterator[str]:
    title = f"`{group.dotted}`" if group.path else "The node"
    yield f"## {title}\n"
    if group.path:
        yield f"{group.says}\n"
    yield _TABLE_HEAD
    for knob in knobs:
        cells = (
            f"`{knob.dotted}`",
            " ".join(f"`{flag}`" for flag in knob.flags),
            f"in `{knob.environment}`" if ANY_NAME in knob.path else f"`{knob.environment}`",
            knob.bounds.replace(" | ", ", "),
            f"`{knob.default}`" if knob.default else "",
            "yes" if knob.dotted in _LIVE else "",
            f"{knob.says} *Bounds: {knob.why}.*" if knob.why else knob.says,
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main(argv: Sequence[str]) -> int:
    """Print the page, or write it to the file after `--write`; return the exit code."""
    match argv:
        case []:
            sys.stdout.write(render_configuration_reference())
        case ["--write", file]:
            path = Path(file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render_configuration_reference(), encoding="utf-8")
        case _:
            sys.stderr.write("usage: python -m smg_node.config.output.reference [--write FILE]\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
