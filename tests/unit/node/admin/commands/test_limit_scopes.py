"""Whose limit `smg-admin limits` sets, shows and takes away: a word, a flag, or an answer to its question."""

import asyncio
import io
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest

from support.http.admin_api import RunAdmin
from support.http.http_node import Node, node

Typed: TypeAlias = Callable[..., Awaitable[tuple[int, str, str]]]


def typed(run: RunAdmin, served: Node) -> Typed:
    """Type a command at this node, from a thread as a process of its own would."""
    served.world.desks("b")

    async def command(*words: str) -> tuple[int, str, str]:
        where = f"http://127.0.0.1:{served.port}"
        return await asyncio.to_thread(run, "--url", where, "limits", *words)

    return command


async def test_a_scope_is_said_once(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        twice = await admin("show", "tenant=a", "--scope", "tenant=a")
    assert twice[0] == 2


@pytest.mark.parametrize(
    "words",
    [
        ["set", "--requests", "60/minute"],
        ["set", "--concurrency", "3", "--if-version", "*"],
        ["set", "--concurrency", "3", "--json"],
        ["unset"],
        ["unset", "--if-version", "0"],
        ["set", "", "--scope", "", "--concurrency", "3"],
    ],
)
async def test_nobody_limits_all_requests_by_leaving_the_scope_out(
    run: RunAdmin, words: list[str]
) -> None:
    async with node() as served:
        code, _, err = await typed(run, served)(*words)
        assert served.world.nodes["b"].limits.rules() == []
    assert code == 2
    said = " ".join(err.replace("│", " ").split())
    assert "say whose requests: --scope tenant=NAME" in said
    assert "or --scope global for all requests together" in said


class Terminal(io.StringIO):
    """Somebody at a keyboard, who types this."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed_in", "is_set"),
    [("y\n", True), ("Yes\n", True), ("n\n", False), ("\n", False), ("", False)],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
async def test_at_a_terminal_all_requests_are_limited_after_a_question(
    run: RunAdmin,
    monkeypatch: pytest.MonkeyPatch,
    typed_in: str,
    form: list[str],
    *,
    is_set: bool,
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed_in))
    async with node() as served:
        admin = typed(run, served)
        code, out, err = await admin("set", "--requests", "5/second", *form)
        found = served.world.nodes["b"].limits.rule("global")
    assert "This limits all requests of the cluster together. Go on? [y/N]" in err
    assert (found is not None) is is_set
    assert code == (0 if is_set else 1)
    assert bool(out) is is_set
    assert ("nothing was changed" in err) is not is_set
    if is_set and not form:
        assert out == "global is limited to 5 requests/second\n"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["set"], 2, "say what is limited"),
        (["unset"], 2, "say whose requests"),
        (["set", "tenant=a", "--concurrency", "1"], 0, ""),
    ],
)
async def test_nothing_is_asked_at_a_terminal_where_there_is_nothing_to_ask(
    run: RunAdmin, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, says: str
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(""))
    async with node() as served:
        done = await typed(run, served)(*words)
    assert done[0] == code
    assert says in " ".join(done[2].replace("│", " ").split())
    assert "Go on?" not in done[2]


@pytest.mark.parametrize(
    "scope", [("--scope", "global"), ("global",), ("--scope", "tenant=a"), ("tenant=a",)]
)
async def test_the_scope_of_a_limit_is_a_word_or_a_flag_for_every_command(
    run: RunAdmin, scope: tuple[str, ...]
) -> None:
    async with node() as served:
        admin = typed(run, served)
        done = await admin("set", *scope, "--requests", "5/second")
        shown = await admin("show", *scope)
        gone = await admin("unset", *scope)
    assert done == (0, f"{scope[-1]} is limited to 5 requests/second\n", "")
    assert shown[1].splitlines()[0].split() == ["scope", scope[-1]]
    assert gone == (0, f"{scope[-1]} has no limit any more\n", "")


@pytest.mark.parametrize(
    ("typed_in", "scope"),
    [
        ("tool=search/web", "tool=search/web"),
        ("tool=search/*", "tool=search/*"),
        ("tool=*", "tool=*"),
        ("tool=search/repos/list,tenant=*", "tenant=*,tool=search/repos/list"),
    ],
)
async def test_runs_of_tools_are_limited_by_server_and_tool(
    run: RunAdmin, typed_in: str, scope: str
) -> None:
    async with node() as served:
        admin = typed(run, served)
        amounts = ("--requests", "100/day", "--cost", "2.50/day", "--volatile")
        done = await admin("set", "--scope", typed_in, *amounts, "--concurrency", "4")
        shown = await admin("show", typed_in)
        listed = await admin("list")
        gone = await admin("unset", scope)
    limits = "100 requests/day, 2.5 cost/day, 4 at a time"
    assert done == (0, f"{scope} is limited to {limits}\n", "")
    assert shown[1].splitlines()[0].split() == ["scope", scope]
    assert listed[1].splitlines()[1].split()[0] == scope
    assert gone == (0, f"{scope} has no limit any more\n", "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--scope", "tool=search", "--requests", "1/day"], "scope: tool is SERVER/TOOL"),
        (["--scope", "tool=s/t,provider=p", "--requests", "1/day"], "scope: provider stands alone"),
        (["--scope", "tenant=a,key=k,model=m,tool=s/t", "--requests", "1/day"], "scope: at most 3"),
        (["--scope", "tool=s/t", "--tokens", "1/day"], "amounts[0].unit of a tool is requests"),
        (
            ["--scope", "tool=s/t", "--requests", "1/day", "--on-exhausted", "finish"],
            "on_exhausted of",
        ),
    ],
)
async def test_what_cannot_be_limited_of_a_tool_is_said_with_its_field(
    run: RunAdmin, words: list[str], says: str
) -> None:
    async with node() as served:
        code, out, err = await typed(run, served)("set", *words, "--volatile")
        assert served.world.nodes["b"].limits.rules() == []
    assert (code, out) == (1, "")
    assert says in " ".join(err.split())
