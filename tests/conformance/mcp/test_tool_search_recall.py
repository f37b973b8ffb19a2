"""Search for tools among five hundred: it finds what a question wants at least as often as bm25s does (M15)."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from smg_node.core.cooperative_steps import whole
from smg_node.core.generation.tool_serving import ListedTool
from smg_node.mcp.pool import Target
from smg_node.mcp.search.bm25 import build_index
from smg_node.mcp.search.searched_tool import SearchedTool, tool_text
from smg_node.mcp.search.word_splitter import WordSplitter
from smg_node.mcp.tools.tool import ToolList
from support.mcp.faulty_server import pooled
from support.mcp.real_servers import PROGRAMS, node, package, process, python
from support.mcp.tool_corpus import QUESTIONS, made_tools

pytestmark = pytest.mark.conformance
LIMIT = 5


async def listed(server: str, target: Target) -> list[SearchedTool]:
    """Return the tools of a real server."""
    async with pooled() as pool:
        tools = await pool.list_tools(target)
    assert isinstance(tools, ToolList), tools
    return [
        SearchedTool(
            f"{server}__{tool.name}",
            ListedTool(tool.name, tool.description, tool.input_schema),
            server,
        )
        for tool in tools.tools.values()
    ]


async def corpus(folder: Path) -> tuple[SearchedTool, ...]:
    everything = process(node(), package("server-everything"), "stdio")
    return (
        *made_tools(),
        *await listed("everything", everything),
        *await listed("filesystem", process(node(), package("server-filesystem"), folder)),
        *await listed("memory", process(node(), package("server-memory"))),
    )


def judged(texts: Sequence[str], questions: Sequence[str], *, split: bool) -> list[list[int]]:
    """Return the places that bm25s finds for each question."""
    asked = {"texts": texts, "questions": questions, "limit": LIMIT, "split": split}
    done = subprocess.run(
        [python(), PROGRAMS / "bm25s_judge.py"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[list[int]] = json.loads(done.stdout)
    return found


def misses(found: Sequence[Sequence[SearchedTool]]) -> list[str]:
    """Return the questions for which none of the wanted tools was found."""
    return [
        question
        for (question, wanted), tools in zip(QUESTIONS, found, strict=True)
        if not {f"{one.server}/{one.tool.name}" for one in tools} & set(wanted)
    ]


def split(text: str) -> str:
    return " ".join(WordSplitter().words(text))


async def test_as_many_questions_find_their_tool_as_with_bm25s(tmp_path: Path) -> None:
    tools = await corpus(tmp_path)
    assert len(tools) >= 500
    assert len(QUESTIONS) == 50
    known = {f"{one.server}/{one.tool.name}" for one in tools}
    assert known >= {name for _, wanted in QUESTIONS for name in wanted}
    questions = [question for question, _ in QUESTIONS]
    index = whole(build_index(tools))
    ours = misses([index.search(question, LIMIT) for question in questions])
    texts = [f"{tool_text(one).name}\n{tool_text(one).rest}" for one in tools]
    theirs = misses(
        [[tools[place] for place in row] for row in judged(texts, questions, split=False)]
    )
    # Their scores on our words: what is better must not be the splitting alone.
    words = judged(list(map(split, texts)), list(map(split, questions)), split=True)
    with_words = misses([[tools[place] for place in row] for row in words])
    told = f"missed here {ours}\nby bm25s {theirs}\nby bm25s with our words {with_words}"
    assert len(ours) <= min(len(theirs), len(with_words)), told
    assert len(ours) <= 5, told
