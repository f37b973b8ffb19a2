"""Relayed answers in any pieces, with any garbage in them."""

import json
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from smg_node.engines.http_facts import (
    listed_models,
    load_of_metrics,
    load_rows,
    settings_of,
    version_of,
)
from smg_node.engines.http_status import failure, is_answer, pause_s
from smg_node.pipeline.passing import Passage, UsageReader
from smg_node.pipeline.relay_headers import from_worker, to_worker
from smg_node.pipeline.rename import Renamer

NAMES = st.sampled_from(["m", "org/model-7b", 'a"b\\c', "model", "é"])
BLANK = st.sampled_from(["", " ", "\t", "   "])
TEXTS = st.text(st.sampled_from('model":\\ {},usage0é'), max_size=30)


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, str]:
    """An answer of a worker that calls its model by the name."""
    name = draw(NAMES)
    blank, other = draw(BLANK), draw(BLANK)
    objects = draw(st.lists(st.tuples(TEXTS, TEXTS, st.booleans()), max_size=5))
    told = []
    for before, after, named in objects:
        model = json.dumps(name if named else name + "x", ensure_ascii=False)
        key = f'"model"{blank}:{other}{model}'
        told.append(f'data: {{"a":{json.dumps(before)},{key},"b":{json.dumps(after)}}}\n\n')
    return "".join(told).encode(), name


def cut(data: bytes, at: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(one % (len(data) + 1) for one in at)})
    return [data[a:b] for a, b in pairwise(edges)]


@given(answers(), st.lists(st.integers(0, 10_000), max_size=12), NAMES)
def test_a_name_is_replaced_wherever_it_stands_for_the_model_and_nowhere_else(
    answer: tuple[bytes, str], at: list[int], new: str
) -> None:
    data, old = answer
    renamer = Renamer(old, new)
    said = b"".join([renamer.feed(piece) for piece in cut(data, at)]) + renamer.finish()
    events = [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: ")]
    heard = [json.loads(line[6:]) for line in said.split(b"\n") if line.startswith(b"data: ")]
    for before, after in zip(events, heard, strict=True):
        assert after["model"] == (new if before["model"] == old else before["model"])
        assert (after["a"], after["b"]) == (before["a"], before["b"])


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b'"', b'"mod', b'el":"m', b'"m"', b":"])))
def test_garbage_passes_a_renamer_without_loss(pieces: list[bytes]) -> None:
    renamer = Renamer("m", "m")
    said = b"".join([renamer.feed(piece) for piece in pieces]) + renamer.finish()
    assert re.sub(rb'"model"\s*:\s*"m"', b"", said) == re.sub(
        rb'"model"\s*:\s*"m"', b"", b"".join(pieces)
    )


COUNTS = st.integers(0, 2**40)


@given(COUNTS, COUNTS, TEXTS, st.lists(st.integers(0, 10_000), max_size=12), st.booleans())
def test_usage_is_read_in_any_pieces_and_never_out_of_a_text(
    prompt: int, completion: int, text: str, at: list[int], streamed: bool
) -> None:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": prompt // 2},
    }
    trap = '"usage": {"prompt_tokens": 7, "completion_tokens": 7}' + text
    if streamed:
        rows = [{"choices": [{"delta": {"content": trap}}], "usage": None}, {"usage": usage}]
        data = b"".join(b"data: %b\n\n" % json.dumps(row).encode() for row in rows)
        data += b"data: " + json.dumps({"choices": [{"text": trap}]}).encode() + b"\n\n"
    else:
        data = json.dumps({"text": trap, "usage": usage, "more": trap}).encode()
    reader = UsageReader()
    for piece in cut(data, at):
        reader.feed(piece)
    assert (reader.prompt_tokens, reader.completion_tokens) == (prompt, completion)
    assert reader.cached_tokens == prompt // 2


@given(st.lists(st.binary(max_size=60) | st.sampled_from([b'"usage":{', b"{", b"}", b'"usage"'])))
def test_garbage_passes_by_unchanged_and_counts_nothing_absurd(pieces: list[bytes]) -> None:
    passage = Passage("m", "m")
    assert b"".join([passage.feed(piece) for piece in pieces]) + passage.finish() == b"".join(
        pieces
    )
    usage = passage.usage
    assert 0 <= usage.cached_tokens <= usage.prompt_tokens
    assert usage.completion_tokens >= 0
    assert len(usage._held) <= 8_192


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
PAGES = st.binary(max_size=200) | VALUES.map(lambda value: json.dumps(value).encode())


@given(PAGES)
def test_any_page_about_a_worker_gives_a_value(page: bytes) -> None:
    assert all(one.name for one in listed_models(page))
    assert isinstance(version_of(page), str)
    assert isinstance(settings_of(page), dict)
    for load in (*load_rows(page), load_of_metrics(page)):
        assert load is None or (load.running >= 0 and load.waiting >= 0 and load.rank >= 0)


HEADERS = st.dictionaries(
    st.sampled_from(["connection", "x-a", "set-cookie", "x-b", "x-smg-node", "transfer-encoding"])
    | st.text(max_size=12).map(str.lower),
    st.text(max_size=30),
    max_size=12,
)


@given(HEADERS, st.integers(100, 599))
def test_headers_of_any_kind_cannot_hurt_a_head(headers: dict[str, str], status: int) -> None:
    named = {word.strip().lower() for word in headers.get("connection", "").split(",")}
    for name, value in {**from_worker(headers), **to_worker(headers)}.items():
        assert name not in {"set-cookie", "transfer-encoding", "connection", "x-smg-node"}
        assert name not in named
        assert "\n" not in name + value
        assert "\r" not in name + value
    if not is_answer(status):
        assert failure(status, headers).status >= 400
    pause = pause_s(headers)
    assert pause is None or 0 <= pause <= 60
