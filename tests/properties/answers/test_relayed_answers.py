"""Relayed answers in any pieces, with any garbage in them."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import token_ids
from smg_node.engines.engine import Prefilled
from smg_node.engines.http.server_metadata import (
    listed_models,
    load_of_metrics,
    load_rows,
    settings_of,
    version_of,
)
from smg_node.engines.http.status_mapping import failure, is_answer, pause_s
from smg_node.pipeline.relay.json_rewrite import Renamer
from smg_node.pipeline.relay.pairs.pair_bodies import prefilled
from smg_node.pipeline.relay.relay_headers import from_worker, to_worker
from smg_node.pipeline.relay.relay_request import APIS, LABELS, Relayable
from smg_node.pipeline.relay.response_filter import ResponseFilter, UsageReader

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
    passage = ResponseFilter("m", "m")
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


FIELD = st.sampled_from(
    ["stream", "max_tokens", "stop", "bootstrap_room", "seed", "rid", "kv_transfer_params"]
)
BODY_VALUES = st.none() | st.booleans() | st.integers(-5, 5) | TEXTS | st.lists(TEXTS, max_size=2)
SPACES = st.text(st.sampled_from(" \n\t\r"), max_size=3)


@given(
    st.dictionaries(FIELD | TEXTS, BODY_VALUES, max_size=6),
    st.dictionaries(FIELD, BODY_VALUES, max_size=3),
    st.lists(FIELD, max_size=3),
    st.sampled_from(["m", "theirs"]),
    SPACES,
    st.sampled_from([None, 1]),
)
def test_what_is_put_into_a_body_is_there_once_and_nothing_else_changes(
    said: dict[str, object],
    more: dict[str, object],
    without: list[str],
    name: str,
    space: str,
    indent: int | None,
) -> None:
    fields = {**said, "model": "m"}
    raw = (space + json.dumps(fields, indent=indent) + space).encode()
    asked = Relayable(
        APIS["chat"], "m", streamed=False, raw=raw, fields=fields, ids=token_ids(), prompt_tokens=1
    )
    body = asked.body(name, more, without=without)
    pairs = json.loads(body, object_pairs_hook=list)
    assert len({key for key, _ in pairs}) == len(pairs)
    left = {
        key: value
        for key, value in fields.items()
        if key not in without and not (key in LABELS and value is not None)
    }
    assert json.loads(body) == {**left, **more, "model": name}
    if name == "m" and not more and left == fields:
        assert body is raw


@given(st.binary(max_size=200) | st.sampled_from([b"{}", b'{"usage":{}}', b"null", b"[" * 5_000]))
def test_any_answer_of_a_first_worker_is_understood_or_refused(answer: bytes) -> None:
    told = found.transfer if (found := understood(answer)) is not None else ""
    assert told == "" or isinstance(json.loads(told), dict)


def understood(answer: bytes) -> Prefilled | None:
    try:
        return prefilled(answer)
    except SmgError as error:
        return None if error.kind is ErrorKind.UPSTREAM_FAILED else pytest.fail(str(error))


@given(
    st.dictionaries(TEXTS, BODY_VALUES, max_size=4),
    st.integers(0, 2**40),
    st.none() | st.integers(0, 2**40),
    st.sampled_from([None, 1]),
)
def test_what_a_first_worker_tells_the_second_one_goes_on_as_it_is_spelled(
    told: dict[str, object], prompt: int, cached: int | None, indent: int | None
) -> None:
    params = json.dumps(told, indent=indent)
    details = "null" if cached is None else f'{{"cached_tokens":{cached}}}'
    usage = f'{{"prompt_tokens":{prompt},"prompt_tokens_details":{details}}}'
    found = prefilled(f'{{"id":1,"kv_transfer_params":{params},"usage":{usage}}}'.encode())
    assert found.transfer == params
    assert found.prompt_tokens == (prompt or -1)
    assert found.cached_tokens == (-1 if cached is None else min(cached, prompt))


@st.composite
def usages(draw: st.DrawFn) -> tuple[bytes, list[object]]:
    """Events of which some say how much was cached, and what each says."""
    counts = st.integers(0, 10**15 - 1) | st.sampled_from([0.5, -3, 10**20, None, 1e30, "7"])
    said: list[object] = draw(st.lists(counts, max_size=4))
    blank, other = draw(BLANK), draw(BLANK)
    events = [
        f'data: {{"a":{json.dumps(draw(TEXTS))},"d":{{"cached_tokens"{blank}:{other}{json.dumps(one)}}}}}\n\n'
        for one in said
    ]
    return "".join(events).encode(), said


@given(usages(), st.lists(st.integers(0, 10_000), max_size=12), st.integers(0, 10**15))
def test_what_was_cached_is_put_right_wherever_it_is_told_and_nowhere_else(
    answer: tuple[bytes, list[object]], at: list[int], cached: int
) -> None:
    data, said = answer
    passage = ResponseFilter("m", "m")
    passage.recount(cached)
    told = b"".join([passage.feed(piece) for piece in cut(data, at)]) + passage.finish()
    heard = [json.loads(line[6:]) for line in told.split(b"\n") if line.startswith(b"data: ")]
    before = [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: ")]
    for one, old, count in zip(heard, before, said, strict=True):
        counts = isinstance(count, int) and 0 <= count < 10**15
        assert one["d"]["cached_tokens"] == (cached if counts else count)
        assert one["a"] == old["a"]


@given(answers(), st.lists(st.integers(0, 10_000), max_size=12), st.binary(max_size=40))
def test_nothing_is_lost_where_names_and_counts_are_put_right(
    answer: tuple[bytes, str], at: list[int], garbage: bytes
) -> None:
    data = answer[0] + garbage
    passage = ResponseFilter(answer[1], answer[1] + "!")
    passage.recount(5)
    told = b"".join([passage.feed(piece) for piece in cut(data, at)]) + passage.finish()
    once = ResponseFilter(answer[1], answer[1] + "!")
    once.recount(5)
    assert told == once.feed(data) + once.finish()
