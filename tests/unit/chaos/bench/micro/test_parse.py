import json

import pytest

from smg_chaos.bench.micro.parse import formats, long_row, measure, parse, scenes_of, table
from smg_chaos.bench.micro.parse_texts import Vocabulary, garbage, speeches
from smg_node.core.generation.pieces import Arguments, Call, Reasoning, Text
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.parsers.selection.registry import known_tools


def test_every_answer_says_what_its_row_claims() -> None:
    wanted = {
        "prose": {Text},
        "a thought": {Reasoning, Text},
        "a string in JSON": {Call, Arguments},
        "numbers in JSON": {Call, Arguments},
        "a tagged string": {Call, Arguments},
        "what looks like markers": {Text},
    }
    for speech in speeches(60):
        printing = Printing(Chosen(speech.reasoning, speech.tools))
        scanner = printing.scanner(tools=(), calls=True, tail="", new_id=lambda name, _at: name)
        pieces = [*scanner.feed(speech.text), *scanner.finish()]
        assert {type(piece) for piece in pieces} == wanted[speech.name], speech.name


def test_a_vocabulary_spells_a_text_and_its_markers_whole() -> None:
    vocabulary = Vocabulary()
    text = "<tool_call> Zürich, 2024"
    ids = vocabulary.ids(text, ("<tool_call>",))
    assert vocabulary.table().decode(ids, skip_special_tokens=False) == text
    assert vocabulary.table().token_text(ids[0]) == "<tool_call>"


def test_long_texts_have_the_size_asked_for() -> None:
    for kind, text in garbage(("<tool_call>",), 4_000).items():
        assert 0.8 * 4_000 <= len(text) <= 4_000, kind


def test_every_format_is_measured() -> None:
    found = formats()
    assert {f"calls {name}" for name in known_tools()} < set(found)
    row = long_row("hermes", *found["calls hermes"], 8_000)
    assert row["by_characters_s"] > 0
    assert row["worst"] in garbage((), 64)


def test_figures_are_told_to_people_and_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = measure(scenes_of(50), rounds=2)
    assert len(rows) == len(speeches(50))
    assert all(row["plain_us"] > 0 for row in rows)
    missed = {**rows[0], "kept": False}
    assert "MISSED" in table([missed], [])
    parse(rounds=1, words=50, long_kb=1, only="calls hermes", as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert [row["format"] for row in said["long"]] == ["calls hermes"]
    parse(rounds=1, words=50, long_kb=0, only="", as_json=False)
    assert "a tagged string" in capsys.readouterr().out
