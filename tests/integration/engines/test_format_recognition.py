"""What a real engine's model prints is recognised, shown, and corrected while everything runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from support.processes.mesh_nodes import smg_admin
from support.processes.mlx_engine import MlxEngines
from support.processes.node import running_node

pytestmark = pytest.mark.integration

TOOLS: Any = [{"type": "function", "function": {"name": "get_weather"}}]
HELLO: Any = [{"role": "user", "content": "Do what you can."}]
KEY = "models/tool/tool_parser"


def test_how_a_model_is_read_is_told_and_may_be_corrected_while_it_is_served(
    mlx_engines: MlxEngines, tmp_path: Path
) -> None:
    worker = f"grpc://{mlx_engines.saying('tool').address}?model=tool"
    with running_node(tmp_path, workers=[worker]) as node:

        def run(*words: str) -> str:
            done = smg_admin("--url", node.url, *words, folder=tmp_path)
            return done.out + done.err

        def calls() -> int:
            with OpenAI(base_url=f"{node.url}/v1", api_key="none", timeout=120) as client:
                answer = client.chat.completions.create(model="tool", messages=HELLO, tools=TOOLS)
            return len(answer.choices[0].message.tool_calls or [])

        before = json.loads(run("models", "explain", "tool", "--json"))["parsers"]
        assert before["tools"]["source"] == "chat template"
        assert calls() == 1
        assert "did you mean 'hermes'" in run("config", "set", KEY, "hermez")
        run("config", "set", KEY, "plain")
        assert "settings: tool_parser: plain" in run("models", "explain", "tool")
        assert calls() == 0
        run("config", "set", KEY, "qwen25")
        assert "settings: tool_parser: qwen25" in run("models", "explain", "tool")
        assert calls() == 1
        run("config", "unset", KEY)
        assert json.loads(run("models", "explain", "tool", "--json"))["parsers"] == before
