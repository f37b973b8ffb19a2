"""Options of every sub-command: node URL, admin key, time-out, form of the output; help of their groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import typer
from typer.core import TyperGroup

from smg_node.admin.client import AdminClient

# Flags of `smg-admin` itself, and how many words follow each.
_GLOBAL_FLAGS: Final = {
    "--url": 1,
    "--key": 1,
    "--key-file": 1,
    "--token-command": 1,
    "--ca-file": 1,
    "--server-name": 1,
    "--cert-file": 1,
    "--cert-key-file": 1,
    "--timeout": 1,
    "--json": 0,
}
_SENTENCE_CHARACTERS_MAX: Final = 1_000
"""Of help; above any."""


class CommandGroup(TyperGroup):
    """Sub-commands, whose help is a list of whole sentences: typer's own ends them where the line does."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list, wrapped."""
        shown = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(_SENTENCE_CHARACTERS_MAX))
            for name, command in shown
            if not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@dataclass(frozen=True, slots=True)
class Options:
    """The flags before the sub-command."""

    client: AdminClient
    as_json: bool
    urls: Sequence[str] = ()
    """Every node that was named; `client` asks the first."""


def options_of(context: typer.Context) -> Options:
    """Return the options of this call."""
    options = context.find_object(Options)
    assert options is not None, "the callback of the root command sets them"
    return options


def hoisted(argv: Sequence[str]) -> list[str]:
    """Return `argv` with the global flags in front, so that they may stand anywhere before `--`."""
    ahead: list[str] = []
    rest: list[str] = []
    words = list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            rest += [word, *words]
            break
        flag, equals, _ = word.partition("=")
        if flag in _GLOBAL_FLAGS:
            ahead.append(word)
            follows = 0 if equals else _GLOBAL_FLAGS[flag]
            ahead += words[:follows]
            del words[:follows]
        else:
            rest.append(word)
    return [*ahead, *rest]
