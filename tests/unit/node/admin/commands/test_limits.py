"""`smg-admin limits` against the real routes and the real definitions: what an operator types and reads."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest

from smg_mesh.escrow.audit.report import Report
from smg_mesh.state.limits.limit_rule import Amount, LimitRule
from smg_node.admin.views.limit_views import read_amount
from support.http.admin_api import RunAdmin, admin_api
from support.http.http_node import Node, node

Typed: TypeAlias = Callable[..., Awaitable[tuple[int, str, str]]]


def typed(run: RunAdmin, served: Node) -> Typed:
    """Type a command at this node, from a thread as a process of its own would."""
    served.world.desks("b")

    async def command(*words: str) -> tuple[int, str, str]:
        where = f"http://127.0.0.1:{served.port}"
        return await asyncio.to_thread(run, "--url", where, "limits", *words)

    return command


def rows_of(shown: str) -> list[str]:
    """The lines of a table, with one blank between its cells."""
    return [" ".join(line.split()) for line in shown.splitlines()]


def use(served: Node, name: str, key: str, **fields: object) -> None:
    owns = name == "node-a"
    said = {
        "key": key,
        "window": 29_000_000,
        "amount": 600,
        "state": "exact",
        "owner": "node-a",
        "term": 3 if owns else 0,
        "roster": ("b", "node-a"),
        "roster_version": 2,
        "minted": 300 if owns else -1,
        "pool": 100 if owns else -1,
        "given": (("b", 150), ("node-a", 50)) if owns else (),
        "standing": 150,
        "borrowed": 0,
        "spent": 40,
        "left": 60,
        "debt": 0,
        "not_adopted": (),
    }
    served.world.nodes[name].rights.reports[key] = Report(**{**said, **fields})  # type: ignore[arg-type]  # its own fields


async def test_a_limit_is_set_listed_shown_and_taken_away(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        nothing = await admin("list")
        done = await admin(
            "set",
            *("--scope", "tenant=acme", "--requests", "600/minute", "--requests", "15/second"),
            *("--tokens", "100000/minute", "--cost", "25.5/day", "--concurrency", "8"),
            *("--mode", "strict", "--standing", "0.25", "--reserve", "worst_case"),
            *("--on-exhausted", "finish", "--cached-weight", "0.1", "--note", "as agreed"),
        )
        listed = await admin("list")
        rule = served.world.nodes["b"].limits.rule("tenant=acme")
        gone = await admin("unset", "tenant=acme")
        after = await admin("show", "--scope", "tenant=acme")
    assert nothing == (0, "There is no limit.\n", "")
    assert done == (
        0,
        "tenant=acme is limited to 600 requests/minute, 15 requests/second, 100000 tokens/minute,"
        " 25.5 cost/day, 8 at a time\n",
        "",
    )
    assert rule is not None
    assert rule.rule == LimitRule(
        tenant="acme",
        amounts=(
            Amount("requests", 600, 60_000),
            Amount("requests", 15, 1_000),
            Amount("tokens", 100_000, 60_000),
            Amount("cost", 25_500_000, 86_400_000),
        ),
        concurrency=8,
        mode="strict",
        standing=0.25,
        reserve="worst_case",
        on_exhausted="finish",
        cached_weight=0.1,
        note="as agreed",
    )
    assert "tenant=acme" in listed[1].splitlines()[1]
    assert gone == (0, "tenant=acme has no limit any more\n", "")
    assert after[0] == 1
    assert "there is no limit for tenant=acme" in after[2]


async def test_what_is_spent_is_shown_for_all_and_for_each_node(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        await admin("set", "--scope", "tenant=acme", "--requests", "600/minute")
        use(served, "node-a", "tenant=acme#requests/60000")
        use(served, "b", "tenant=acme#requests/60000", spent=10, left=90)
        shown = await admin("show", "tenant=acme")
    rows = rows_of(shown[1])
    whole = rows.index("LIMIT OF SPENT LEFT UNAVAILABLE POOL STANDING OWNER STATE WINDOW ENDS")
    name = "tenant=acme#requests/minute"
    assert rows[whole + 1].startswith(f"{name} 600 50 550 0 100 300 node-a exact ")
    nodes = rows.index("LIMIT NODE SPENT LEFT GIVEN STANDING STATE")
    assert rows[nodes + 1 : nodes + 3] == [
        f"{name} b 10 90 150 150 exact",
        f"{name} node-a 40 60 50 150 exact",
    ]
    assert "Everything is counted." in shown[1]
    assert "NOT exact" not in shown[1]
    assert "60000" not in shown[1]
    legend = {row.partition(" ")[0] for row in rows[nodes + 3 :]}
    assert {"LEFT", "UNAVAILABLE", "POOL", "STANDING", "GIVEN"} <= legend
    assert not {"BORROWED", "DEBT", "NOTE"} & legend


async def test_what_cannot_be_had_is_a_column_and_its_reason_a_line(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        await admin("set", "--scope", "tenant=acme", "--cost", "6/minute")
        key, three = "tenant=acme#cost/60000", ("b", "c", "node-a")
        all_of_it = {"amount": 6_000_000, "right": 1_000_000, "roster": three}
        owner = {"minted": 3_000_000, "made": 3_000_000, "pool": 3_000_000, "given": ()}
        for name in ("node-a", "b"):
            mine = owner if name == "node-a" else {}
            use(served, name, key, spent=500_000, left=500_000, **all_of_it, **mine)
        shown = await admin("show", "tenant=acme")
    rows, name = rows_of(shown[1]), "tenant=acme#cost/minute"
    assert any(row.startswith(f"{name} 6 1 4 1 3 0.0003 node-a exact ") for row in rows)
    assert "NOT exact: node c is dead or cut off: what it spent is not counted." in rows
    why = "1 with node c, which is dead or cut off, spent there or not."
    assert f"{name}: {why}" in rows


async def test_what_was_used_beyond_a_limit_is_said_with_columns_of_its_own(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        await admin("set", "--scope", "tenant=acme", "--requests", "600/day")
        key, beyond = "tenant=acme#requests/86400000", {"spent": 630, "left": 0, "pool": 0}
        use(served, "node-a", key, debt=7, borrowed=20, window=20_000, **beyond)
        use(served, "b", key, spent=0, left=0, window=19_999)
        shown = await admin("show", "tenant=acme")
    rows, name = rows_of(shown[1]), "tenant=acme#requests/day"
    assert f"{name} 600 630 0 0 0 150 7 node-a exact 2024-10-05 00:00:00+00:00" in rows
    assert "LIMIT NODE SPENT LEFT GIVEN STANDING BORROWED DEBT STATE NOTE" in rows
    assert f"{name} b 0 0 150 150 0 0 exact another window: not counted" in rows
    assert f"{name} node-a 630 0 50 150 20 7 exact -" in rows
    assert any(row.startswith(f"{name}: 30 more than the limit, borrowed") for row in rows)
    assert f"NOT exact: the clock of node b is in another window of {name}: not counted." in rows
    assert {"BORROWED", "DEBT"} <= {row.partition(" ")[0] for row in rows}


async def test_a_node_of_an_older_version_is_shown_with_what_it_says(run: RunAdmin) -> None:
    older = {
        "limit": {
            **dict.fromkeys(("scope", "rule"), "tenant=acme"),
            "amounts": [],
            "concurrency": 3,
            "mode": "strict",
            "standing": 0.5,
            "reserve": "estimate",
            "on_exhausted": "debt",
            "cached_weight": 1.0,
            "version": "7",
            "owner": "a",
            "time_ms": 0,
            "note": "",
        },
        "uses": [
            {
                **dict.fromkeys(("window", "window_ms", "ends_ms", "debt", "term"), 0),
                "key": "tenant=acme#concurrent/0",
                "unit": "concurrent",
                "amount": 3,
                "spent": 1,
                "left": 2,
                "pool": None,
                "standing": 3,
                "owner": "",
                "state": "exact",
                "nodes": {},
                "not_adopted": [],
            }
        ],
        "exact": False,
        "cut": 0,
        "silent": {},
    }
    with admin_api(lambda _: (200, older)) as api:
        code, out, _ = await asyncio.to_thread(run, "--url", api.url, "limits", "show")
    assert code == 0
    assert "tenant=acme#concurrent/0 3 1 2 0 - 3 - exact -" in rows_of(out)
    assert "NOT exact: this node is of a version that does not say why." in out


async def test_setting_again_replaces_the_whole_limit_of_what_was_seen(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        await admin("set", "global", "--requests", "5/10s")
        first = served.world.nodes["b"].limits.rule("global")
        again = await admin("set", "global", "--concurrency", "2", "--json")
        late = await admin("set", "global", "--concurrency", "3", "--if-version", "7")
        new = await admin("set", "global", "--concurrency", "4", "--if-version", "0")
        forced = await admin("set", "global", "--concurrency", "5", "--if-version", "*")
    assert first is not None
    view = json.loads(again[1])
    assert (view["scope"], view["amounts"], view["concurrency"]) == ("global", [], 2)
    for refused in (late, new):
        assert refused[0] == 1
        assert "the limit of global was changed by somebody else: 2 at a time" in refused[2]
    assert forced[0] == 0


async def test_taking_one_away_says_what_counts_again(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        await admin("set", "--scope", "tenant=*", "--requests", "5/second")
        await admin("set", "--scope", "tenant=vip", "--requests", "50/second")
        gone = await admin("unset", "--scope", "tenant=vip")
        as_json = await admin("unset", "tenant=*", "--json")
        none = await admin("unset", "tenant=*")
    assert gone[1] == "tenant=vip goes by tenant=* again: 5 requests/second\n"
    assert json.loads(as_json[1])["now"] is None
    assert (none[0], none[1]) == (1, "")
    assert "has no limit of its own" in none[2]


async def test_what_is_not_exact_is_said(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        await admin("set", "--scope", "model=org/m,tenant=a", "--tokens", "600/minute")
        key = "tenant=a,model=org/m#tokens/60000"
        use(served, "node-a", key, not_adopted=("c",), debt=3)
        served.world.meshes["node-a"].silent.add("b")
        shown = await admin("show", "tenant=a,model=org/m")
        raw = await admin("show", "tenant=a,model=org/m", "--json")
    reasons = [line for line in shown[1].splitlines() if line.startswith("NOT exact: ")]
    assert len(reasons) == 2
    assert reasons[0].startswith("NOT exact: node b does not answer: ")
    assert reasons[1] == "NOT exact: node c is not known to go by the present definitions."
    assert "which does not answer, spent there or not." in shown[1]
    assert json.loads(raw[1])["exact"] is False


async def test_a_limit_without_an_owner_says_so(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        await admin("set", "global", "--requests", "600/minute")
        for name in ("node-a", "b"):
            nobody = {"term": 0, "owner": "", "minted": -1, "pool": -1, "given": ()}
            use(served, name, "#requests/60000", state="standing", **nobody)
        shown = await admin("show")
    name = "global#requests/minute"
    assert f"NOT exact: {name} has no owner now: what one before had left is not" in shown[1]
    assert f"{name}: nobody owns it at the moment; an owner is elected when" in shown[1]


async def test_a_limit_nobody_uses_is_shown_as_it_is_defined(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        await admin("set", "--scope", "tenant=*", "--requests", "5/second", "--volatile")
        shown = await admin("show", "tenant=x")
        listed = await admin("list")
        raw = json.loads((await admin("list", "--json"))[1])
    assert "Nothing of it is in use." in shown[1]
    lines = dict(line.split(maxsplit=1) for line in shown[1].splitlines() if "  " in line)
    assert (lines["scope"], lines["rule"], lines["limits"]) == (
        "tenant=x",
        "tenant=*",
        "5 requests/second",
    )
    assert listed[1].splitlines()[1].endswith("volatile")
    assert raw["limits"][0]["volatile"] is True


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "say what is limited"),
        (["--requests", "60"], "is not AMOUNT/WINDOW"),
        (["--requests", "/minute"], "is no number"),
        (["--requests", "x/minute"], "is no number"),
        (["--requests", "-1/minute"], "not negative"),
        (["--requests", "1.5/minute"], "whole"),
        (["--requests", "nan/minute"], "not negative"),
        (["--requests", f"{'9' * 40}/minute"], "too large"),
        (["--cost", "0.0000001/day"], "six digits"),
        (["--concurrency", "x"], "a valid integer"),
        (["--concurrency", "1", "--if-version", "x"], "a version is a number"),
    ],
)
async def test_what_is_typed_wrong_is_bad_usage_and_asks_nobody(
    run: RunAdmin, words: list[str], says: str
) -> None:
    code, _, err = await asyncio.to_thread(
        run, "--url", "http://127.0.0.1:9", "limits", "set", "--scope", "global", *words
    )
    assert code == 2
    assert says in " ".join(err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--requests", "60/month"], "amounts[0].window must be second, minute, hour or day"),
        (["--scope", "acme", "--requests", "60/minute"], "say tenant="),
        (["--concurrency", "1", "--mode", "lax"], "mode must be one of strict, balanced"),
        (["--concurrency", "1", "--standing", "3"], "standing must be a number from 0 to 1"),
        (["--requests", "6/minute", "--requests", "7/60s"], "a second time"),
    ],
)
async def test_what_the_node_refuses_is_told_in_its_words(
    run: RunAdmin, words: list[str], says: str
) -> None:
    async with node() as served:
        code, _, err = await typed(run, served)("set", "--scope", "global", *words)
        assert served.world.nodes["b"].limits.rules() == []
    assert code == 1
    assert says in err


async def test_what_was_written_on_both_sides_of_a_cut_is_told(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        served.world.limits.cut("node-a", "b")
        await admin("set", "global", "--requests", "5/second")
        served.world.limits.wall_ms += 10
        rule = LimitRule(amounts=(Amount("requests", 7, 1_000),))
        served.world.nodes["b"].limits.put(rule, version=None)
        served.world.limits.heal()
        listed = await admin("list")
        settled = await admin("set", "global", "--requests", "6/second")
        after = await admin("list")
    assert "in conflict" in listed[1]
    assert settled[0] == 0
    assert "in conflict" not in after[1]


def test_amounts_are_read_exactly() -> None:
    assert read_amount("requests", "60/minute") == {
        "unit": "requests",
        "amount": 60,
        "window": "minute",
    }
    assert read_amount("cost", "25.50/day")["amount"] == 25_500_000
    assert read_amount("cost", "0.000001/day")["amount"] == 1
    assert read_amount("tokens", "1e6/hour")["amount"] == 1_000_000


@pytest.mark.parametrize("form", [[], ["--json"]])
async def test_watching_shows_it_again_until_somebody_has_seen_enough(
    run: RunAdmin, monkeypatch: pytest.MonkeyPatch, form: list[str]
) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise KeyboardInterrupt

    async with node() as served:
        admin = typed(run, served)
        await admin("set", "--scope", "tenant=acme", "--requests", "600/minute")
        use(served, "node-a", "tenant=acme#requests/60000")
        monkeypatch.setattr("smg_node.admin.views.watch_loop.time.sleep", sleep)
        code, out, err = await admin("show", "tenant=acme", "--watch", *form)
        monkeypatch.undo()
    assert (code, err) == (0, "")
    if form:
        assert [json.loads(line)["limit"]["scope"] for line in out.splitlines()] == [
            "tenant=acme"
        ] * 3
    else:
        assert out.count("600 requests/minute") == 3
