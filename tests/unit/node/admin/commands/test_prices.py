"""`smg-admin prices` against the real routes: set, shown, taken from published tables, removed."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from support.http.admin_api import RunAdmin
from support.http.http_node import Node, node
from support.http.raw_http import ask

Typed: TypeAlias = Callable[..., Awaitable[tuple[int, str, str]]]
TABLE = {
    "delta-1": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.2e-05},
    "delta-2": {
        "input_cost_per_token": 1e-06,
        "output_cost_per_token": 4e-06,
        "input_cost_per_image": 0.1,
    },
}


def typed(run: RunAdmin, served: Node) -> Typed:
    async def command(*words: str) -> tuple[int, str, str]:
        where = f"http://127.0.0.1:{served.port}"
        return await asyncio.to_thread(run, "--url", where, *words)

    return command


def rows_of(shown: str) -> list[str]:
    return [" ".join(line.split()) for line in shown.splitlines()]


async def test_a_price_is_set_by_amounts_or_a_file_shown_and_removed(
    run: RunAdmin, tmp_path: Path
) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(
        "prices:\n  a/delta:\n    prompt: 4\n    steps: [{above: 1000, prompt: 8}]\n"
        "    tiers: {flex: {prompt: 2}}\n    server_tools: {web_search: 0.01}\n    from: 2026-08-21\n"
    )
    async with node() as served:
        admin = typed(run, served)
        nothing = await admin("prices", "list")
        flags = ("--prompt", "3", "--cache-written", "3.75", "--answer", "15")
        done = await admin("prices", "set", "claude", *flags)
        by_file = await admin("prices", "set", "a/delta", str(file))
        listed = await admin("prices", "list")
        shown = await admin("prices", "show", "a/delta")
        wrong = await admin("prices", "set", "claude", "--prompt", "-1")
        both = await admin("prices", "set", "claude", str(file), "--prompt", "1")
        gone = await admin("prices", "remove", "claude")
        again = await admin("prices", "remove", "claude")
        audited = [(row.action, row.subject) for row in served.world.rows]
    assert nothing[:2] == (0, "Nobody has said what anything costs.\n")
    assert done[1].startswith("claude has a price on every node (version ")
    assert by_file[0] == 0
    assert rows_of(listed[1]) == [
        "NAME FROM PROMPT CACHED WRITTEN LONG ANSWER CALL ALSO SOURCE",
        "a/delta 2026-08-21 4 - - - - - above 1,000, flex, web_search cluster",
        "claude - 3 - 3.75 - 15 - - cluster",
    ]
    assert shown[1].splitlines()[1:] == [
        "from 2026-08-21",
        "  prompt 4",
        "  above 1,000 tokens of prompt: prompt 8",
        "  web_search 0.01 each time",
        "  tier flex",
        "    prompt 2",
    ]
    assert "prompt: must be between 0 and" in wrong[2]
    assert "either FILE or amounts" in both[2]
    assert gone == (0, "claude has no price of the cluster any more\n", "")
    assert again[0] == 1
    assert "nobody has said what 'claude' costs" in again[2]
    assert audited[:3] == [
        ("price.set", "claude"),
        ("price.set", "a/delta"),
        ("price.remove", "claude"),
    ]


async def test_a_published_table_is_compared_first_and_written_only_where_that_is_said(
    run: RunAdmin, tmp_path: Path
) -> None:
    file = tmp_path / "table.json"
    file.write_text(json.dumps(TABLE))
    models = ("--model", "delta-1", "--model", "delta-3")
    async with node() as served:
        admin = typed(run, served)
        provider = ("openai-a", "--kind", "openai", "--api-key", "env:KEY")
        await admin("providers", "set", *provider, *models)
        await admin("routes", "set", "fast", "--to", "openai-a/delta-2")
        looked = await admin("prices", "import", "litellm", str(file))
        before = await admin("prices", "list", "--json")
        wrote = await admin("prices", "import", "litellm", str(file), "--write")
        after = await admin("prices", "list", "--json")
        twice = await admin("prices", "import", "litellm", str(file), "--write")
        every = await admin("prices", "import", "litellm", str(file), "--all", "--match", "*-2")
        none = await admin("prices", "import", "genai-prices", str(file))
        odd = await admin("prices", "import", "prices.com", str(file))
    assert rows_of(looked[1]) == [
        "NAME CHANGE ROW NOW IN THE TABLE",
        "openai-a/delta-1 new delta-1 - 3 - - 12",
        "openai-a/delta-2 new delta-2 - 1 - - 4",
        "openai-a/delta-3 not there - - -",
    ]
    assert looked[2].splitlines() == [
        "openai-a/delta-2: without input_cost_per_image",
        "nothing was written: 2 prices would be, with --write",
    ]
    assert json.loads(before[1])["prices"] == []
    assert wrote[2].splitlines()[-1] == "2 prices were written"
    assert {row["name"]: row["price"] for row in json.loads(after[1])["prices"]} == {
        "openai-a/delta-1": {"prompt": 3, "answer": 12},
        "openai-a/delta-2": {"prompt": 1, "answer": 4},
    }
    assert twice[2].splitlines()[-1] == "0 prices were written"
    assert rows_of(every[1])[1:] == ["delta-2 new delta-2 - 1 - - 4"]
    assert "no table of genai-prices" in none[2]
    assert "is genai-prices or litellm" in odd[2]


async def test_a_price_that_somebody_else_changed_is_not_overwritten() -> None:
    path = "/v1/cluster/prices/a/b%2Fc"
    async with node() as served:
        first = {"if-match": "0", "content-type": "application/json"}
        made = await ask(served.port, "PUT", path, {"prompt": 1}, headers=first)
        stale = await ask(served.port, "PUT", path, {"prompt": 2}, headers=first)
        bad = {**first, "if-match": "*"}
        wrong = await ask(served.port, "PUT", path, {"promt": 2}, headers=bad)
        missing = await ask(served.port, "GET", "/v1/cluster/prices/other")
    assert (made.status, made.json()["name"]) == (200, "a/b/c")
    assert (stale.status, stale.json()["current"]["price"]) == (409, {"prompt": 1})
    assert (wrong.status, wrong.json()["error"]["code"]) == (400, "invalid_price")
    assert "did you mean 'prompt'" in wrong.json()["error"]["message"]
    assert (missing.status, missing.json()["error"]["code"]) == (404, "price_not_found")
