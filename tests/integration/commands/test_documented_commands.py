"""Every command that a page shows its readers is one that the programs of this tree take as it stands.

The programs' own parsers read the words, and nothing is carried out: a command, a flag or a choice that was renamed, and a
value out of its range, cannot stay in a page. That the commands also do what the page says is shown elsewhere.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.core import TyperCommand
from typer.main import get_command

from smg_chaos.cli import app as chaos_app
from smg_node.admin.cli import build_app
from smg_node.admin.options import hoisted
from smg_node.config.schema.knob import Schema
from smg_node.config.settings import Settings
from smg_node.config.sources.command_line import parse_flags
from support.pages.shell_blocks import Shown, languages, shown_commands

_ROOT = Path(__file__).parents[3]
_PAGES = (
    "README.md",
    "chaos/README.md",
    *sorted(
        f"docs/{path.name}"
        for path in (_ROOT / "docs").glob("*.md")
        if path.name not in ("README.md", "sizing.md")  # which have links and numbers
    ),
    *sorted(f"docs/chaos/{path.name}" for path in (_ROOT / "docs/chaos").glob("*.md")),
)
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
# What else a reader is told to type; what a page shows beyond these and ours has to be thought of here.
_OTHERS = frozenset(
    (
        "curl",
        "openssl",
        "pip",
        "make",
        "createdb",
        "pg_dump",
        "pg_restore",
        "tar",
        "mkdir",
        "cat",
        "cp",
        "sleep",
        "awk",
        "claude",
        "gemini",
    )
)
# What its reader brings along or makes before; anything of its kind stands in for it.
_BROUGHT = {
    "llama_cpp_python-*.tar.gz": "README.md",
    ".cache/vocabulary/qwen": "chaos",
    "operator.key": "README.md",
    "lead.key": "README.md",
}


def _text(page: str) -> str:
    return (_ROOT / page).read_text(encoding="utf-8")


def _refusal(words: Sequence[str]) -> str:
    """Return why the program of a command would not take its words; "" if it takes them."""
    program, *rest = [str(_ROOT / _BROUGHT[word]) if word in _BROUGHT else word for word in words]
    if program == "smg-node":
        return "; ".join(str(problem) for problem in parse_flags(rest, Schema(Settings)).problems)
    command = get_command(build_app() if program == "smg-admin" else chaos_app)
    try:
        command.main(
            hoisted(rest) if program == "smg-admin" else rest, program, standalone_mode=False
        )
    except Exception as error:  # whichever class it has, the page is wrong, and the error says how
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.fixture
def carried_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the commands that would have been carried out, had they not only been read."""
    names: list[str] = []
    monkeypatch.setattr(TyperCommand, "invoke", lambda command, _: names.append(command.name))
    return names


@pytest.mark.parametrize("page", _PAGES)
def test_the_programs_take_every_command_of_a_page(page: str, carried_out: list[str]) -> None:
    ours = [shown for shown in shown_commands(_text(page)) if shown.words[0].startswith("smg-")]
    refused = {f"{page}:{one.line} {' '.join(one.words)}": _refusal(one.words) for one in ours}
    assert {command: why for command, why in refused.items() if why} == {}
    assert len(ours) >= 2, "the page shows too few commands: was it read at all?"
    assert carried_out, "none of them is more than a start of a node"


@pytest.mark.parametrize("page", _PAGES)
def test_a_page_shows_nothing_that_nobody_thought_of(page: str) -> None:
    unknown = {
        shown
        for shown in shown_commands(_text(page))
        if not shown.words[0].startswith("smg-") and shown.words[0] not in _OTHERS
    }
    assert unknown == set()


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", _text("Makefile"), re.MULTILINE))
    asked = [
        target
        for shown in shown_commands(_text("README.md"))
        if shown.words[0] == "make"
        for target in shown.words[1:]
    ]
    assert asked
    assert set(asked) <= targets


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    links = _LINK.findall(_text("README.md"))
    assert links
    assert [link for link in links if not (_ROOT / link).exists()] == []


def test_every_block_of_the_readme_says_what_it_is() -> None:
    assert languages(_text("README.md")) <= {"sh", "python", "yaml", "text"}


def test_the_readers_of_commands_see_what_a_shell_sees() -> None:
    text = "\n```sh\nexport K=$(smg-admin keys list)  # why\na -x \\\n  'b c' … & d | e\n```\nand `smg-node --help`\n"
    assert shown_commands(text) == [
        Shown(2, ("smg-admin", "keys", "list")),
        Shown(2, ("a", "-x", "b c")),
        Shown(2, ("d",)),
        Shown(2, ("e",)),
        Shown(7, ("smg-node", "--help")),
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("smg-node", "--no-such-flag"),
        ("smg-admin", "workers", "enlarge"),
        ("smg-admin", "workers", "list", "--no-such-flag"),
        ("smg-chaos", "engine", "--contract", "no-such-contract"),
    ],
)
def test_a_command_that_is_wrong_is_refused(words: tuple[str, ...], carried_out: list[str]) -> None:
    assert _refusal(words)
    assert carried_out == []
