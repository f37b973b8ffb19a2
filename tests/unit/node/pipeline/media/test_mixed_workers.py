"""Workers of one model whose image processors differ: whose rules a prompt follows, and who is handed what."""

from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import Sampling
from smg_node.engines.engine import Contract, EngineRequest, MediaCard
from smg_node.media.engine_media import ReferenceBatch, TensorBatch
from support.engines.fake_engine import FakeEngine
from support.media.pictured_bench import LEVELS, chat, picture, pictured, seeing
from support.media.plain_pictures import PLACE, PlainFamily

FILES = {f"https://x/{at}": f"30x2:{at}" for at in range(24)}
SHORT = Sampling(max_tokens=10)
FINER = PlainFamily("plain-2", 5)
BOTH = MediaCard(
    frozenset({"tensors", "references"}), device_normalizes=True, schemes=frozenset({"data"})
)


def places(request: EngineRequest) -> int:
    return list(request.ids).count(PLACE)


def engines(card: MediaCard = LEVELS) -> dict[str, FakeEngine]:
    """Return three workers, of which the last has other files."""
    return {"one": seeing(card), "three": seeing(card, depth=3), "two": seeing(card)}


async def test_each_worker_is_handed_pictures_by_its_own_rules(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    used = engines()
    async with pictured(tmp_path, FILES, used, families={"three": FINER}) as it:
        for url in FILES:
            answer = await it.bench.answer(SHORT, prompts=chat("look", picture(url)))
            assert answer.choices[0].text() == "hello"
        counts = {name: [places(each) for each in one.requests] for name, one in used.items()}
        assert {*counts["one"], *counts["two"]} == {3}
        assert set(counts["three"]) == {6}
        assert sum(map(len, counts.values())) == len(FILES)
        for one in used.values():
            for request in one.requests:
                assert isinstance(request.media, TensorBatch)
    told = [each for each in caplog.messages if "prepare pictures differently" in each]
    assert len(told) == 1
    assert "tiny" in told[0]


async def test_a_chat_stays_with_the_rules_it_began_with(tmp_path: Path) -> None:
    used = engines()
    async with pictured(tmp_path, FILES, used, families={"three": FINER}) as it:
        for first in list(FILES)[:6]:
            seen = set()
            for turn in range(4):
                more = [picture(url, 2 + at) for at, url in enumerate(list(FILES)[:turn])]
                await it.bench.answer(SHORT, prompts=chat("look", picture(first), *more))
                (journey,) = it.bench.journal.get("req_1")[:1]
                seen.add(journey.pictures[0].digest)
            assert len(seen) == 1


async def test_a_retry_stays_among_workers_that_agree(tmp_path: Path) -> None:
    async def broken(_: EngineRequest):  # type: ignore[no-untyped-def]  # as `Script`
        raise SmgError(ErrorKind.UPSTREAM_FAILED, "gone")
        yield

    used = engines()
    used["one"] = seeing(script=broken)
    async with pictured(tmp_path, FILES, used, families={"three": FINER}) as it:
        for url in list(FILES)[:8]:
            answer = await it.bench.answer(SHORT, prompts=chat("look", picture(url)))
            assert answer.choices[0].text() == "hello"
        assert {places(each) for each in used["two"].requests} <= {3}
        assert {places(each) for each in used["three"].requests} <= {6}


async def test_one_that_works_on_pictures_itself_gets_those_of_others_by_reference(
    tmp_path: Path,
) -> None:
    used = {"one": seeing(BOTH), "two": seeing(BOTH, depth=3)}
    async with pictured(tmp_path, FILES, used, families={"two": FINER}) as it:
        for url in FILES:
            await it.bench.answer(SHORT, prompts=chat("look", picture(url)))
        for name, own in (("one", 3), ("two", 6)):
            for request in used[name].requests:
                if isinstance(request.media, ReferenceBatch):
                    assert places(request) == 1, "it makes the places itself"
                else:
                    assert places(request) == own
        kinds = {type(request.media) for one in used.values() for request in one.requests}
        assert kinds == {TensorBatch, ReferenceBatch}


class Encoding(FakeEngine):
    """An engine that encodes pictures for others."""

    def __init__(self, like: FakeEngine) -> None:
        super().__init__()
        self.bundle = like.bundle
        self.model_card = replace(like.model_card, contract=Contract.VLLM, role="encode")
        self.asked: list[EngineRequest] = []

    async def encode(self, request: EngineRequest) -> None:
        self.asked.append(request)


async def test_an_encoder_is_handed_pictures_that_were_made_by_its_own_rules_only(
    tmp_path: Path,
) -> None:
    one, same, other = seeing(), Encoding(seeing()), Encoding(seeing(depth=3))
    one.model_card = replace(one.model_card, contract=Contract.VLLM)
    used: dict[str, FakeEngine] = {"one": one, "same": same, "other": other}
    async with pictured(tmp_path, FILES, used, families={"other": FINER}) as it:
        for url in FILES:
            answer = await it.bench.answer(SHORT, prompts=chat("look", picture(url)))
            assert answer.choices[0].text() == "hello"
    assert {places(each) for each in one.requests} == {3}, "nobody else works prompts off"
    assert len(same.asked) == len(FILES)
    assert not other.asked


async def test_where_all_agree_nothing_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    used = engines()
    async with pictured(tmp_path, FILES, used) as it:
        for url in FILES:
            await it.bench.answer(SHORT, prompts=chat("look", picture(url)))
        assert all(one.requests for one in used.values())
    assert not [each for each in caplog.messages if "differently" in each]
