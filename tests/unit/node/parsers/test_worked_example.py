"""The format that docs/extending/format.md builds does what its transcript there says, in every cutting."""

import re
from pathlib import Path
from types import ModuleType

from smg_node.parsers.reading.answer_grammar import PLAIN, AnswerFormat
from smg_node.parsers.reading.format import FormatRequest
from smg_node.parsers.reading.scanner import Scanner
from support.answers.parser_cases import TOOLS, joined, shown
from support.tools.transcripts import parse

_PAGE = "docs/extending/format.md"
_TEXT = Path(__file__).parents[4].joinpath(_PAGE).read_text(encoding="utf-8")


def _blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", _TEXT, re.DOTALL)


def test_the_worked_example_reads_its_transcript() -> None:
    module = ModuleType("acme")
    exec(compile(_blocks("python")[0], _PAGE, "exec"), module.__dict__)
    form = AnswerFormat(PLAIN, module.FORMATS)
    (block,) = parse(_blocks("text")[0]).blocks
    text = block.given.removesuffix("\n")
    for size in (1, 2, 5, len(text)):
        scanner = Scanner(
            form, asked=FormatRequest(TOOLS), start="content", new_id=lambda _name, at: f"call_{at}"
        )
        said = [p for at in range(0, len(text), size) for p in scanner.feed(text[at : at + size])]
        assert shown(joined([*said, *scanner.finish()])) + "\n" == block.said
