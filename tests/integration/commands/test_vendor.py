"""`smg-chaos vendor` as a process: several kinds, signatures that another process knows, and its end."""

from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec
import pytest

from support.providers.stand_ins import KEY, VERSION, StandIn, running_stand_ins

pytestmark = pytest.mark.integration

THINKS = {"type": "enabled", "budget_tokens": 1_024}


def message(where: StandIn, *turns: Any) -> list[Any]:
    """Return the blocks that Claude answers."""
    body: Any = {"model": "claude-haiku-4-5", "max_tokens": 2_000, "thinking": THINKS}
    body["messages"] = list(turns)
    heads = {"x-api-key": KEY, "anthropic-version": VERSION, "content-type": "application/json"}
    request = Request(f"{where.base}/v1/messages", msgspec.json.encode(body), heads)
    with urlopen(request, timeout=30) as answer:
        content = msgspec.json.decode(answer.read())["content"]
    assert isinstance(content, list)
    return content


def test_it_serves_several_kinds_and_ends_when_it_is_told(tmp_path: Path) -> None:
    flags = ("--kind", "openai", "--kind", "anthropic", "--rpm", "9")
    with running_stand_ins(tmp_path, *flags) as (rows, process):
        assert [row.base.removeprefix(row.url) for row in rows] == ["/v1", ""]
        assert all(row.admin("/bill")["rows"] == [] for row in rows)
        process.stop()
        assert process.ended() == 0


def test_another_process_knows_a_signature_again(tmp_path: Path) -> None:
    question = {"role": "user", "content": "hello"}
    with (
        running_stand_ins(tmp_path / "a", "--kind", "anthropic") as ([first], _),
        running_stand_ins(tmp_path / "b", "--kind", "foundry") as ([second], _),
    ):
        said = {"role": "assistant", "content": message(first, question)}
        again = message(second, question, said, {"role": "user", "content": "and then?"})
        assert again[1]["text"] == "You said: and then? (turns=3)"
        [row] = second.admin("/bill")["rows"]
        assert (row["key"], row["requests"]) == (KEY, 1)
