"""Models whose files are read when a request needs them: once, for all who wait, and never before."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smg_node.cluster.settings.model_views import parsers_view
from smg_node.cluster.workers.worker_views import worker_view
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.lazy_model import LazyModel
from smg_node.fleet.models.load_result import Finding
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.fleet.models.model_registry import vocabulary_digest
from smg_node.fleet.models.served_model import ServedModel
from smg_node.fleet.vocabularies.replacement import REPLACED_CODE
from smg_node.fleet.workers.worker import Status
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import bytewise, declare, fleet_of, running
from support.http.raw_http import until

BROKEN = "no tokenizer can be made of that"


class Loading:
    """How a tokenizer comes to be: held up, and broken, as a test wants it."""

    def __init__(self) -> None:
        self.count = 0
        self.broken = False
        self.free = threading.Event()
        self.free.set()

    def load(self, bundle: TokenizerBundle) -> LoadedTokenizer:
        self.count += 1
        assert bundle.files == FakeEngine().bundle.files, "as the engine sent them"
        assert self.free.wait(10)
        if self.broken:
            raise invalid(BROKEN)
        return bytewise(bundle)


@asynccontextmanager
async def lazy(
    folder: Path, loading: Loading, engine: FakeEngine | None = None
) -> AsyncIterator[Fleet]:
    fleet = fleet_of({"a": engine or FakeEngine()}, folder, load=loading.load, at_once=False)
    async with running(fleet, ["a"]):
        try:
            await until(lambda: all(worker.routable for worker in fleet.workers()))
            yield fleet
        finally:
            loading.free.set()


def model_of(fleet: Fleet) -> ServedModel:
    found = fleet.served("tiny")
    assert found is not None
    return found


def finding(fleet: Fleet, *, vocabulary: int = 0, message: str = "") -> Finding:
    digest, kind = model_of(fleet).bundle_digest, ErrorKind.INVALID_REQUEST.value
    return Finding("tiny", digest, vocabulary, kind if message else "", message)


def shown_vocabulary(fleet: Fleet) -> int:
    (worker,) = fleet.workers()
    found: int = worker_view(worker, (), now_s=0.0).details["vocabulary"]
    return found


async def test_a_worker_is_served_by_a_model_that_nobody_has_read(tmp_path: Path) -> None:
    loading = Loading()
    async with lazy(tmp_path, loading) as fleet:
        model = model_of(fleet)
        assert (loading.count, model.trouble(), parsers_view(model)) == (0, None, None)
        assert model.context(FakeEngine().model_card) == 64
        assert shown_vocabulary(fleet) == 258, "what the engine says itself"
        assert fleet.models.hear(finding(fleet, vocabulary=200)) is model
        assert shown_vocabulary(fleet) == 200
        with pytest.raises(AttributeError):
            model.encoder.encode("too early", add_special_tokens=False)


async def test_all_who_wait_have_it_read_once(tmp_path: Path) -> None:
    loading = Loading()
    loading.free.clear()
    async with lazy(tmp_path, loading) as fleet, asyncio.TaskGroup() as group:
        model = model_of(fleet)
        waiting = [group.create_task(fleet.models.read(model)) for _ in range(5)]
        await until(lambda: loading.count)
        assert not any(one.done() for one in waiting)
        loading.free.set()
        await asyncio.gather(*waiting)
        await fleet.models.read(model)
        assert loading.count == 1
        assert model is model_of(fleet)
        assert len(model.encoder.encode("hello", add_special_tokens=False).ids) == 5
        assert "ships none" in model.why_no_template
        assert parsers_view(model) is not None
        assert fleet.models.hear(finding(fleet, message=BROKEN)) is None, "it is known better here"


async def test_who_leaves_takes_nothing_from_those_who_stay(tmp_path: Path) -> None:
    loading = Loading()
    loading.free.clear()
    async with lazy(tmp_path, loading) as fleet, asyncio.TaskGroup() as group:
        model = model_of(fleet)
        first = group.create_task(fleet.models.read(model))
        await until(lambda: loading.count)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = group.create_task(fleet.models.read(model))
        await asyncio.sleep(0)
        loading.free.set()
        await second
        assert (loading.count, model.unread) == (1, None)


async def test_a_failure_is_told_to_all_who_wait_and_the_next_one_tries_again(
    tmp_path: Path,
) -> None:
    loading = Loading()
    loading.broken = True
    async with lazy(tmp_path, loading) as fleet:
        model = model_of(fleet)
        both = [fleet.models.read(model), fleet.models.read(model)]
        failed = await asyncio.gather(*both, return_exceptions=True)
        assert [str(one) for one in failed] == [BROKEN, BROKEN]
        assert (loading.count, model.unread is None) == (1, False)
        loading.broken = False
        await fleet.models.read(model)
        assert (loading.count, model.unread) == (2, None)


async def test_what_is_known_to_fail_is_not_tried(tmp_path: Path) -> None:
    loading = Loading()
    async with lazy(tmp_path, loading) as fleet:
        model = model_of(fleet)
        fleet.models.hear(finding(fleet, message=BROKEN))
        with pytest.raises(SmgError, match=BROKEN):
            await fleet.models.read(model)
        assert loading.count == 0
        fleet.models.hear(finding(fleet, vocabulary=258))
        await fleet.models.read(model)
        assert (loading.count, model.unread) == (1, None)


async def test_what_an_operator_says_meanwhile_counts(tmp_path: Path) -> None:
    loading = Loading()
    loading.free.clear()
    async with lazy(tmp_path, loading) as fleet, asyncio.TaskGroup() as group:
        model = model_of(fleet)
        reading = group.create_task(fleet.models.read(model))
        await until(lambda: loading.count)
        fleet.models.retune({}, reasoning_parsers={"tiny": "deepseek_r1"}, tool_parsers={})
        loading.free.set()
        await reading
        plain = fleet_of(
            {}, tmp_path, settings={"tiny": ModelSettings(reasoning_parser="deepseek_r1")}
        )
        said_before = await plain.models.adopt(
            "tiny", FakeEngine().bundle, in_use=lambda: False, alias=None
        )
        assert model.printing.chosen == said_before.printing.chosen


async def test_a_models_own_name_goes_before_an_alias_that_was_learnt_earlier(
    tmp_path: Path,
) -> None:
    models = fleet_of({}, tmp_path).models
    bundle = FakeEngine().bundle
    by_path = await models.adopt("/models/eyes", bundle, in_use=lambda: False, alias="eyes")
    assert models.find("eyes") is by_path
    own = await models.adopt("eyes", bundle, in_use=lambda: False, alias=None)
    assert models.find("eyes") is own
    assert models.find("/models/eyes") is by_path


async def test_what_another_process_cannot_read_is_down_here_until_it_can(tmp_path: Path) -> None:
    async with lazy(tmp_path, Loading()) as fleet:
        (worker,) = fleet.workers()
        assert fleet.models.hear(finding(fleet, message=BROKEN)) is not None
        worker.wake.set()
        await until(lambda: worker.status is not Status.READY)
        assert worker.reason == BROKEN
        (late,) = declare(fleet, "a?priority=7")
        await until(lambda: late.reason == BROKEN)
        fleet.models.hear(finding(fleet, vocabulary=258))
        await until(lambda: late.routable)


async def test_a_finding_about_other_files_is_kept_for_them(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with lazy(tmp_path, Loading(), engine) as fleet:
        other = TokenizerBundle({"tokenizer.json": b"[]"}, "1" * 64, "a test")
        broken = Finding("tiny", vocabulary_digest(other), 0, "invalid_request", BROKEN)
        assert fleet.models.hear(broken) is None
        assert model_of(fleet).trouble() is None
        with pytest.raises(SmgError, match=BROKEN):
            await fleet.models.adopt("tiny", other, in_use=lambda: False, alias=None)


async def test_who_reads_at_once_says_what_became_of_it_once(tmp_path: Path) -> None:
    loading, heard = Loading(), list[Finding]()
    loading.broken = True
    fleet = fleet_of({"a": FakeEngine()}, tmp_path, load=loading.load)
    fleet.models.watch(heard.append)
    async with running(fleet, ["a"]):
        await until(lambda: loading.count > 2)
        loading.broken = False
        await until(lambda: all(worker.routable for worker in fleet.workers()))
    assert [(one.message, one.vocabulary) for one in heard] == [(BROKEN, 0), ("", 258)]
    assert list(fleet.models.findings()) == heard[1:]


async def test_that_this_process_is_replaced_says_nothing_of_the_files(tmp_path: Path) -> None:
    calls, heard = [0], list[Finding]()

    def load(bundle: TokenizerBundle) -> LoadedTokenizer:
        calls[0] += 1
        if calls[0] < 3:
            raise SmgError(ErrorKind.OVERLOADED, "another has it", code=REPLACED_CODE)
        return bytewise(bundle)

    fleet = fleet_of({"a": FakeEngine()}, tmp_path, load=load)
    fleet.models.watch(heard.append)
    async with running(fleet, ["a"]):
        await until(lambda: all(worker.routable for worker in fleet.workers()))
    assert [(one.message, one.vocabulary) for one in heard] == [("", 258)]


@pytest.mark.parametrize("files", [{}, {"a": b""}, {"tokenizer.json": b"{}" * 9999, "b/c": b"\0"}])
def test_packed_files_come_out_as_they_went_in(files: dict[str, bytes]) -> None:
    bundle = TokenizerBundle(files, "d", "a test")
    assert LazyModel(bundle).bundle() == bundle


def test_every_kind_of_error_can_be_told() -> None:
    for kind in ErrorKind:
        error = Finding.of_error("m", "d", SmgError(kind, "x")).error()
        assert error is not None
        assert (error.kind, error.message) == (kind, "x")
    assert Finding("m", "d", 5).error() is None
