import asyncio
import os
from pathlib import Path

import pytest

from smg_node.core.errors import SmgError
from smg_node.providers.access_tokens.local_sources import LocalSources
from smg_node.providers.access_tokens.made_token import MadeToken
from smg_node.providers.access_tokens.token_keeper import TokenKeeper
from smg_node.providers.provider_call import BearerToken


class FakeMaker:
    """Makes tokens `t1`, `t2` … that hold for 100 seconds, or fails as often as it is told to; asked one at a time."""

    def __init__(self) -> None:
        self.made = 0
        self.failures: list[Exception] = []
        self.open = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def make(self, now: float) -> MadeToken:
        self.open += 1
        assert self.open == 1
        try:
            await self.gate.wait()
            if self.failures:
                raise self.failures.pop(0)
            self.made += 1
            return MadeToken(BearerToken(f"t{self.made}"), now, now + 100)
        finally:
            self.open -= 1


class Stage:
    """A keeper on a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.maker = FakeMaker()
        self.published: list[MadeToken] = []
        self.second = asyncio.Event()
        self.keeper = TokenKeeper("vertex-a", self.maker, lambda: self.now, published=self._publish)

    def _publish(self, token: MadeToken) -> None:
        self.published.append(token)
        if len(self.published) == 2:
            self.second.set()

    @property
    def value(self) -> str:
        token = self.keeper.current
        if token is None:
            return ""
        assert isinstance(token.credential, BearerToken)
        return token.credential.value


async def test_a_token_is_made_at_once_and_again_at_four_fifths_of_its_life() -> None:
    stage = Stage()
    assert (stage.value, stage.keeper.due) == ("", 1_000.0)
    await stage.keeper.refresh()
    assert (stage.value, stage.keeper.due) == ("t1", 1_080.0)
    stage.now = 1_080.0
    await stage.keeper.refresh()
    assert (stage.value, stage.keeper.due) == ("t2", 1_160.0)
    assert [token.made for token in stage.published] == [1_000.0, 1_080.0]
    stage.now = 1_090.0
    assert stage.keeper.age_s() == 10.0


async def test_a_failing_refresh_leaves_the_old_token_to_its_end() -> None:
    stage = Stage()
    await stage.keeper.refresh()
    stage.maker.failures = [OSError("no route")] * 8
    stage.now = 1_080.0
    waits = []
    for _ in range(8):
        await stage.keeper.refresh()
        assert stage.keeper.due is not None
        waits.append(stage.keeper.due - stage.now)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert (stage.value, str(stage.keeper.failure)) == ("t1", "no route")
    stage.now = 1_100.0
    assert stage.value == ""
    await stage.keeper.refresh()
    assert (stage.value, stage.keeper.failure) == ("t2", None)


async def test_many_refusals_of_one_token_ask_for_one_refresh() -> None:
    stage = Stage()
    await stage.keeper.refresh()
    old = stage.keeper.current
    assert old is not None
    stage.now = 1_020.0
    assert [stage.keeper.refused(old) for _ in range(3)] == [True, True, True]
    assert stage.keeper.due == 1_020.0
    await stage.keeper.refresh()
    assert stage.keeper.refused(old) is True
    assert (stage.value, stage.keeper.due) == ("t2", 1_100.0)


async def test_a_new_token_that_is_refused_is_not_the_reason() -> None:
    stage = Stage()
    await stage.keeper.refresh()
    token = stage.keeper.current
    assert token is not None
    stage.now = 1_009.0
    assert stage.keeper.refused(token) is False
    assert stage.keeper.due == 1_080.0


async def test_only_the_first_token_is_waited_for() -> None:
    stage = Stage()
    stage.maker.gate.clear()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stage.keeper.run())
        waiting = [group.create_task(stage.keeper.first()) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        stage.maker.gate.set()
        tokens = [await task for task in waiting]
        running.cancel()
    assert stage.maker.made == 1
    assert tokens == [stage.keeper.current] * 3


async def test_no_token_in_time_is_an_error_that_says_to_try_again() -> None:
    stage = Stage()
    stage.maker.failures = [OSError("no route")]
    await stage.keeper.refresh()
    with pytest.raises(SmgError, match="vertex-a has no access token") as caught:
        await stage.keeper.first(0.001)
    assert (caught.value.status, caught.value.code) == (503, "no_provider_token")
    assert str(caught.value.__cause__) == "no route"


async def test_the_loop_makes_a_token_when_one_is_refused() -> None:
    stage = Stage()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stage.keeper.run())
        old = await stage.keeper.first()
        stage.now = 1_050.0
        assert stage.keeper.refused(old)
        await stage.second.wait()
        running.cancel()
    assert (stage.maker.made, stage.value) == (2, "t2")


async def test_a_token_that_is_made_at_its_end_is_not_made_in_a_circle() -> None:
    stage = Stage()

    class Late(FakeMaker):
        async def make(self, now: float) -> MadeToken:
            return MadeToken(BearerToken("late"), now, now)

    keeper = TokenKeeper("a", Late(), lambda: stage.now)
    await keeper.refresh()
    assert (keeper.current, keeper.due) == (None, 1_001.0)


def test_references_are_read_on_this_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.write_text("k-1\n")
    monkeypatch.setitem(os.environ, "SMG_TEST_KEY", "k-2")
    sources = LocalSources()
    assert sources.file(str(path)) == "k-1\n"
    assert (sources.env("SMG_TEST_KEY"), sources.env("SMG_TEST_NONE")) == ("k-2", None)
    with pytest.raises(FileNotFoundError):
        sources.file(str(tmp_path / "gone"))
