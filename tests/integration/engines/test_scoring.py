"""Completions for scorers, through a real node: a row for each token that usage counts, whatever the contract."""

from pathlib import Path
from typing import Any

import pytest

from support.http.raw_http import ask
from support.processes.node import running_node
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

PROMPT = [40, 41, 42, 43]


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@pytest.mark.parametrize("contract", ["vllm", "sglang", "trtllm"])
async def test_rows_are_those_of_the_prompt_and_of_what_usage_counts(
    contract: str, tmp_path: Path
) -> None:
    script = tmp_path / "nothing.ids"
    # An answer that is end-of-text and nothing else: the row that scorers cut off.
    script.write_text("[]")
    flags = ("--contract", contract, "--script", str(script))
    with (
        running_simulated(tmp_path, *flags) as engine,
        running_node(tmp_path, workers=[f"grpc://{engine.address}"]) as node,
    ):
        body = {"model": "simulated", "logprobs": 1, "echo": True, "temperature": 0}
        for more, choices, counted in (
            ({"prompt": [PROMPT], "max_tokens": 1}, 1, 1),
            ({"prompt": [PROMPT], "max_tokens": 0}, 1, 0),
            ({"prompt": [PROMPT, PROMPT[:2]], "max_tokens": 1}, 2, 2),
            ({"prompt": PROMPT, "max_tokens": 1, "n": 2, "logprobs": 0}, 2, 2),
        ):
            answer = await ask(port_of(node.url), "POST", "/v1/completions", {**body, **more})
            assert answer.status == 200, answer.body
            told: dict[str, Any] = answer.json()
            assert told["usage"]["completion_tokens"] == counted
            assert len(told["choices"]) == choices
            for choice in told["choices"]:
                rows = choice["logprobs"]
                prompt = 2 if choice["text"] == "()" else 4
                assert len(rows["token_logprobs"]) == prompt + counted // choices
                assert rows["token_logprobs"][0] is None
                assert rows["text_offset"] == list(range(prompt + counted // choices))
                assert {len(row) for row in rows.values()} == {prompt + counted // choices}
