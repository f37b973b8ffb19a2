"""What a simulated engine says, and the tokenizer it says it in."""

import hashlib
import json
from pathlib import Path

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.engine.protocol.answers import Answer, Following
from smg_chaos.engine.scripts.bundle import Bundle, BundleError, folder_bundle, pieces, zipped
from smg_chaos.engine.scripts.scripts import NAMES, TEXTS, script_of
from smg_chaos.engine.scripts.vocabulary import MARKERS, SPECIAL, byte_letters, tiny_files
from support.engines.simulated_engine import Simulation, bundle

# Of tokenizer.json. It changes only when somebody changes the tokenizer on purpose: answers, and
# with them recorded transcripts, change too.
DIGEST = "a3f9f62767be09d8f51f17c16d2a798ee4dcdefdf909b02e0007444fea07709b"


def test_the_built_in_tokenizer_is_the_same_everywhere() -> None:
    files = tiny_files(vocabulary=4160, context=2048)
    assert hashlib.sha256(files["tokenizer.json"]).hexdigest() == DIGEST
    assert zipped(files) == zipped(tiny_files(vocabulary=4160, context=2048))


@given(st.text())
def test_any_text_survives_the_built_in_tokenizer(text: str) -> None:
    ids = bundle().encode(text)
    tokenizer = bundle().tokenizer
    assert tokenizer.decode(ids, skip_special_tokens=False) == text
    assert all(token < bundle().size for token in ids)


def test_markers_and_special_tokens_are_one_token_each_and_only_special_ones_are_skipped() -> None:
    for text in (*SPECIAL, *MARKERS):
        (token,) = bundle().encode(text)
        assert bundle().decode([token]) == ("" if text in SPECIAL else text)


def test_letters_stand_for_bytes_one_to_one() -> None:
    letters = byte_letters()
    assert len(set(letters)) == 256
    assert all(letter.isprintable() and not letter.isspace() for letter in letters)


def test_a_vocabulary_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="the built-in tokenizer has 4"):
        tiny_files(vocabulary=300, context=2048)


def test_the_chat_template_writes_chatml_with_tools_and_answers() -> None:
    config = json.loads(bundle().files["tokenizer_config.json"])
    template = jinja2.Environment(autoescape=False).from_string(config["chat_template"])
    call = {"function": {"name": "f", "arguments": '{"a": 1}'}}
    text = template.render(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "4"},
        ],
        tools=[{"name": "f"}],
        add_generation_prompt=True,
    )
    assert text.startswith("<|im_start|>system\nBe brief.\n\nFunctions you may call")
    assert '<tools>\n{"name": "f"}\n</tools>' in text
    assert "<|im_start|>user\n2 + 2?<|im_end|>\n<|im_start|>assistant\n\n<tool_call>\n" in text
    assert '{"name": "f", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n' in text
    assert text.endswith(
        "<|im_start|>user\n<tool_response>\n4\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )


# ── Scripts ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_text_is_said_and_then_the_end(name: str) -> None:
    simulation = Simulation("mlx", script=name)
    (complete,) = simulation.completes(simulation.generate(stream=None))
    *body, last = complete["output_ids"]
    assert bundle().decode(body) == TEXTS[name]
    assert last in bundle().eos_ids


def test_characters_are_split_across_tokens_on_purpose() -> None:
    answer = script_of("split-utf8", bundle()).answer([], 0, 0)
    halves = [bundle().decode([token]) for token in answer.head]
    assert sum("\ufffd" in half for half in halves) > 20


def test_an_echo_says_the_prompt() -> None:
    simulation = Simulation("mlx", script="echo")
    (complete,) = simulation.completes(simulation.generate([5, 6, 7], stream=None))
    assert complete["output_ids"] == [5, 6, 7, bundle().eos_ids[0]]


def test_chance_depends_on_the_seed_and_the_choice_alone() -> None:
    def said(seed: int, choice: int) -> tuple[int, ...]:
        return script_of("random", bundle()).answer([], seed, choice).slice(0, 50)

    assert said(1, 0) == said(1, 0)
    assert len({said(seed, choice) for seed in range(3) for choice in range(3)}) == 9
    assert not set(said(1, 0)) & {*bundle().eos_ids, *bundle().further_eos_ids}


def test_an_endless_answer_ends_at_its_limit_only() -> None:
    simulation = Simulation("mlx", script="endless", step_s=0.0)
    (complete,) = simulation.completes(simulation.generate(stream=None, max_tokens=1234))
    assert (complete["completion_tokens"], complete["finish_reason"]) == (1234, "length")


def test_a_file_holds_text_or_ids(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Guten Tag 🙂", encoding="utf-8")
    (tmp_path / "a.ids").write_text("1, 2 3\n4", encoding="utf-8")
    (tmp_path / "a.json").write_text("[7, 8]", encoding="utf-8")
    eos = bundle().eos_ids[0]
    answers = [
        script_of(str(tmp_path / name), bundle()).answer([], 0, 0).head
        for name in ("a.txt", "a.ids", "a.json")
    ]
    assert answers == [(*bundle().encode("Guten Tag 🙂"), eos), (1, 2, 3, 4, eos), (7, 8, eos)]
    for content in ("[1, -2]", "[true]", "x", "[1", '["a"]'):
        (tmp_path / "bad.ids").write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match="does not hold"):
            script_of(str(tmp_path / "bad.ids"), bundle())


def test_an_unknown_script_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'reasoning'"):
        script_of("reasonin", bundle())
    assert all(script_of(name, bundle()) for name in NAMES)


@given(
    st.lists(st.integers(0, 9), max_size=6),
    st.lists(st.integers(0, 9), min_size=1, max_size=4),
    st.integers(0, 20),
    st.integers(0, 20),
    st.frozensets(st.integers(0, 9), max_size=3),
)
def test_an_answer_is_its_head_and_then_its_loop_for_ever(
    head: list[int], loop: list[int], start: int, length: int, wanted: frozenset[int]
) -> None:
    answer = Answer(tuple(head), tuple(loop))
    whole = (head + loop * 60)[:80]
    assert list(answer.slice(start, start + length)) == whole[start : start + length]
    found = next((at for at in range(60) if whole[at] in wanted), None)
    assert answer.first_of(wanted) == found == answer.first_of(wanted)


@pytest.mark.parametrize("name", ["fixed", "tool-call", "split-utf8", "endless"])
@given(st.integers(1, 130), st.lists(st.integers(0, 4159), max_size=4))
def test_an_engine_says_the_rest_of_what_another_one_began(
    name: str, said: int, prompt: list[int]
) -> None:
    script = script_of(name, bundle())
    whole = script.answer([], 0, 0)
    said = said if name == "endless" else min(said, len(whole.head) - 1)
    rest = script.answer([*prompt, 4159, *whole.slice(0, said)], 0, 0)
    assert rest.slice(0, 60) == whole.slice(said, said + 60)
    assert rest.tool == whole.tool
    assert script.answer([*whole.slice(0, said), 4159], 0, 0).slice(0, 60) == whole.slice(0, 60)
    assert script.answer([], 0, 0) is whole


_FEW = tuple(range(3, 40))
_PROMPTS = st.lists(st.integers(0, 4159), max_size=12)


@given(_PROMPTS, st.integers(0, 40), st.integers(0, 40))
def test_what_follows_a_prompt_and_its_answers_beginning_is_the_answers_rest(
    prompt: list[int], said: int, length: int
) -> None:
    whole = Following(prompt, _FEW)
    rest = Following([*prompt, *whole.slice(0, said)], _FEW)
    assert rest.slice(0, length) == whole.slice(said, said + length)
    assert [rest.token(at) for at in range(length)] == list(rest.slice(0, length))


@given(_PROMPTS, st.integers(2, 40), st.data())
def test_one_id_too_many_too_few_or_wrong_changes_what_follows(
    prompt: list[int], said: int, data: st.DataObject
) -> None:
    answer = Following(prompt, _FEW)
    head = list(answer.slice(0, said))
    at = data.draw(st.integers(0, said - 1))
    right = answer.slice(said, said + 24)
    for wrong in (
        [*head[:at], *head[at + 1 :]],
        [*head[: at + 1], *head[at:]],
        [*head[:at], head[at] + 1, *head[at + 1 :]],
    ):
        assert Following([*prompt, *wrong], _FEW).slice(0, 24) != right


def test_a_following_answer_never_says_what_it_may_not() -> None:
    answer = Following([1, 2], _FEW)
    first = answer.slice(0, 1)[0]
    assert answer.first_of(frozenset([first])) == 0
    assert answer.first_of(frozenset([2])) is None
    assert first not in answer.never(frozenset([first])).slice(0, 500)
    assert answer.never(frozenset(_FEW)).slice(0, 3) == answer.slice(0, 3)


def test_engines_that_follow_go_on_where_another_one_stopped() -> None:
    simulation = Simulation("mlx", script="following", step_s=0.0)
    (whole,) = simulation.completes(simulation.generate([9, 8, 7], stream=None, max_tokens=60))
    emitted = whole["output_ids"][:23]
    (rest,) = simulation.completes(
        simulation.generate([9, 8, 7, *emitted], stream=None, max_tokens=37)
    )
    assert emitted + rest["output_ids"] == whole["output_ids"]
    assert (rest["completion_tokens"], rest["finish_reason"]) == (37, "length")


def test_where_an_answer_of_any_length_ends_follows_from_its_seed_alone() -> None:
    eos = bundle().eos_ids[0]
    script = script_of("any-length", bundle())
    lengths = [
        script.answer([1, 2], seed, 0).first_of(frozenset([eos])) or 0 for seed in range(400)
    ]
    assert min(lengths) >= 4
    assert max(lengths) <= 600
    assert len(set(lengths)) > 100
    assert 45 < sum(lengths) / len(lengths) < 85
    assert script.answer([9], 7, 0).first_of(frozenset([eos])) == lengths[7]
    whole = script.answer([1, 2], 11, 0)
    rest = script.answer([1, 2, *whole.slice(0, 3)], 11, 0)
    assert rest.slice(0, 5) == whole.slice(3, 8)


def test_how_long_an_answer_of_any_length_is_can_be_said() -> None:
    eos = bundle().eos_ids[0]
    script = script_of("any-length:260,100,370", bundle())
    ends = [script.answer([1, 2], seed, 0).first_of(frozenset([eos])) or 0 for seed in range(300)]
    assert min(ends) >= 260
    assert max(ends) == 370
    assert len(set(ends)) > 60
    assert 310 < sum(ends) / len(ends) < 345


@pytest.mark.parametrize(
    "lengths",
    [
        "",
        "4",
        "4,60",
        "4,60,600,1",
        "4,0,600",
        "9,1,8",
        "-4,60,600",
        "a,b,c",
        "1,1,1000001",
        "4,,6",
    ],
)
def test_lengths_that_make_no_sense_are_refused_by_name(lengths: str) -> None:
    with pytest.raises(ValueError, match="say any-length:LEAST,MORE,MOST"):
        script_of(f"any-length:{lengths}", bundle())


# ── Bundles ─────────────────────────────────────────────────────────────────


def test_a_folder_is_a_bundle_and_an_empty_one_is_not(tmp_path: Path) -> None:
    for name, content in bundle().files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "chat.jinja").write_text("{{ x }}", encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"weights stay at home")
    made = folder_bundle(tmp_path)
    assert list(made.files) == [*bundle().files, "chat.jinja"]
    assert (made.eos_ids, made.further_eos_ids) == (bundle().eos_ids, bundle().further_eos_ids)
    assert made.path == str(tmp_path)
    with pytest.raises(BundleError, match="no tokenizer files"):
        folder_bundle(tmp_path / "nothing")


def test_a_bundle_without_a_tokenizer_cannot_speak() -> None:
    with pytest.raises(BundleError, match=r"needs tokenizer\.json"):
        Bundle({"config.json": b"{}"}, "x").encode("hi")


@pytest.mark.parametrize("size", [1, 65535, 65536, 65537, 200_000])
def test_an_archive_travels_in_pieces_of_64_kib_with_the_sum_on_the_last(size: int) -> None:
    archive = bytes(index % 251 for index in range(size))
    sent = pieces(archive)
    assert b"".join(piece for piece, _ in sent) == archive
    assert all(len(piece) <= 65536 for piece, _ in sent)
    assert [digest for _, digest in sent[:-1]] == [""] * (len(sent) - 1)
    assert sent[-1][1] == hashlib.sha256(archive).hexdigest()
