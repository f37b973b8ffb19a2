"""Templates are told apart by what comes back of the answers they show."""

import io
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smg_chaos.opinion.known_exceptions import EXCUSED
from smg_chaos.opinion.past_answers import ANSWERS
from smg_chaos.opinion.round_trips import travel
from smg_chaos.opinion.trips_cli import app

_TURNS = (
    "{% for m in messages %}<|{{ m.role }}|>\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}CALLS"
    "<|end|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
_CALLS = (
    "{% for call in m.tool_calls %}\n<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}"
)
EQUAL = _TURNS.replace("CALLS", _CALLS)
FIRST = _TURNS.replace("CALLS", _CALLS.replace("m.tool_calls", "(m.tool_calls or [])[:1]"))
SILENT = _TURNS.replace("CALLS", "")
REFUSES = _TURNS.replace(
    "CALLS", "{% if m.tool_calls %}{{ raise_exception('Only words.') }}{% endif %}"
)
# The first quotation mark in an argument ends it.
DIFFERENT = _TURNS.replace("CALLS", _CALLS.replace("tojson", "tojson | replace('\\\\\"', '\"')"))


def test_what_a_template_shows_comes_back() -> None:
    found = travel("any", EQUAL, {})
    assert (found.reasoning, found.tools, found.verdict) == ("think", "hermes", "equal")
    assert found.notes == ()
    assert [trip.kind for trip in found.trips] == list(ANSWERS)
    thought = next(trip for trip in found.trips if trip.kind == "thought, call")
    assert thought.heard is not None
    assert thought.heard["thought"] == "I need the tides."
    assert thought.heard["arguments"] == [{"port": "Brest"}]


def test_a_template_that_shows_the_first_call_of_a_message_is_shown_one_after_the_other() -> None:
    found = travel("any", FIRST, {})
    assert (found.verdict, found.notes) == ("equal", ())
    two = next(trip for trip in found.trips if trip.kind == "two calls")
    assert two.heard is not None
    assert len(two.heard["arguments"]) == 2


def test_a_template_that_shows_no_call_is_told_apart() -> None:
    assert travel("any", SILENT, {}).verdict == "no calls"


def test_a_refusal_is_told_in_the_templates_words() -> None:
    found = travel("any", REFUSES, {})
    assert found.verdict == "refuses"
    assert len(found.notes) == 1
    assert "Only words." in found.notes[0]
    assert "two calls" in found.notes[0]


def test_a_template_that_is_none_refuses() -> None:
    assert travel("any", "{% if %}", {}).verdict == "refuses"


def test_what_comes_back_otherwise_is_different_unless_there_is_a_reason() -> None:
    found = travel("any", DIFFERENT, {})
    assert found.verdict == "DIFFERENT"
    assert {trip.kind for trip in found.different} == {"code", "lookalikes"}
    why = {"code": "it does not escape", "lookalikes": "it does not escape"}
    excused = travel("any", DIFFERENT, why)
    assert excused.verdict == "excused"
    assert excused.notes == ("it does not escape [code; lookalikes]",)
    assert travel("any", DIFFERENT, {"code": "only this"}).verdict == "DIFFERENT"


def test_true_is_not_one() -> None:
    spelled = _CALLS.replace("tojson", "tojson | replace('false', '0')")
    found = travel("any", _TURNS.replace("CALLS", spelled), {})
    assert [(trip.kind, trip.wrong) for trip in found.different] == [("types", ("arguments",))]


def test_every_excuse_is_for_a_known_kind() -> None:
    for name, reasons in EXCUSED.items():
        assert reasons, name
        assert set(reasons) <= set(ANSWERS), name


def test_the_command_reads_a_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text(EQUAL, encoding="utf-8")
    (tmp_path / "other.jinja").write_text(SILENT, encoding="utf-8")
    result = CliRunner().invoke(app, ["--templates", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "mine   equal      think + hermes" in result.output
    assert "2 templates, 10 answers each: 1 equal, 1 no calls" in result.output
    (tmp_path / "wrong.jinja").write_text(DIFFERENT, encoding="utf-8")
    result = CliRunner().invoke(app, ["--templates", str(tmp_path), "--only", "WRONG", "--details"])
    assert result.exit_code == 1
    assert "otherwise in arguments" in result.output
    assert "arguments heard" in result.output


def test_the_command_reads_a_package_without_unpacking_it(tmp_path: Path) -> None:
    package = tmp_path / "some-1.0.tar.gz"
    with tarfile.open(package, "w:gz") as archive:
        for name in ("vendor/llama.cpp/models/templates/mine.jinja", "docs/theirs.jinja"):
            text = EQUAL.encode()
            member = tarfile.TarInfo(f"some-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    result = CliRunner().invoke(app, ["--package", str(package)])
    assert result.exit_code == 0, result.output
    assert "1 templates, 10 answers each: 1 equal" in result.output
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"no archive")
    assert CliRunner().invoke(app, ["--package", str(broken)]).exit_code == 2


@pytest.mark.parametrize("arguments", [[], ["--only", "x"]])
def test_without_templates_it_says_where_they_come_from(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "pip download" in result.output
