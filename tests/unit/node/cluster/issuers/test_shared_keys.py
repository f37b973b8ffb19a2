"""Shared keys: what tokens are checked with in one process, and when that is something else than before."""

import asyncio

from smg_mesh.shared import AccessState, Denial, IssuerKeySet
from smg_node.access.tokens.issuer import Issuer
from smg_node.access.tokens.key_set import KeySet
from smg_node.cluster.issuers.shared_keys import SharedIssuerKeys
from support.access.key_world import CORP, MovedClock, settled
from support.state.fake_namespace import FakeNamespaces

DAY_S = 86_400


class Scene:
    """Keys of one process, and the state that other nodes write to."""

    def __init__(self) -> None:
        world = FakeNamespaces("a", "b", name="access")
        self.clock = MovedClock()
        self.others = AccessState(world["b"])
        self.read: list[bytes] = []
        self.begun = asyncio.Event()
        self.loop: asyncio.AbstractEventLoop
        self.issuers = {"corp": CORP}
        state = AccessState(world["a"])
        self.keys = SharedIssuerKeys(
            lambda: self.issuers,
            state.keys,
            state.denials,
            lambda alias: None,
            self._parse,
            self.clock.now_ms,
        )

    def _parse(self, document: bytes) -> KeySet:
        if document == b'{"keys":[]}':
            self.loop.call_soon_threadsafe(self.begun.set)
            return KeySet((), ())
        self.read.append(document)
        if document == b"broken":
            raise ValueError("no set")
        return KeySet((), ())

    def put(self, document: bytes, *, source: str = "https://sso.example") -> None:
        """Let another node share keys that it fetched just now."""
        fetched = IssuerKeySet("corp", document, self.clock.now_ms(), -1, source, "b")
        self.others.keys.put(fetched)


def test_keys_are_read_once_however_often_they_are_used_and_fetched_again() -> None:
    scene = Scene()
    assert (scene.keys.keys("corp"), scene.keys.state("corp")) == (None, "never")
    scene.put(b"one")
    version = scene.keys.version
    first = scene.keys.keys("corp")
    assert first is not None
    assert scene.keys.state("corp") == "fresh"
    scene.clock.seconds += 600
    scene.put(b"one")
    assert scene.keys.keys("corp") is first
    assert (scene.read, scene.keys.version) == ([b"one"], version)
    scene.put(b"two")
    assert scene.keys.keys("corp") is not first
    assert scene.keys.version > version


def test_they_are_good_for_a_day_and_then_stale() -> None:
    scene = Scene()
    scene.put(b"one")
    scene.clock.seconds += DAY_S - 0.001
    assert scene.keys.state("corp") == "fresh"
    scene.clock.seconds += 0.001
    assert (scene.keys.state("corp"), scene.keys.keys("corp")) == ("stale", None)
    held = scene.keys.held("corp")
    assert held is not None
    assert scene.keys.shown("corp").keys == ()
    scene.put(b"one")
    assert scene.keys.state("corp") == "fresh"


async def test_growing_too_old_is_another_version() -> None:
    scene = Scene()
    scene.put(b"one")
    scene.loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(scene.keys.run())
        async with asyncio.timeout(30):
            await scene.begun.wait()
        version = scene.keys.version
        # A clock that jumps is noticed with the next thing that happens.
        scene.clock.seconds += DAY_S
        scene.keys.look()
        async with asyncio.timeout(30):
            while scene.keys.version < version + 2:
                await settled()
        running.cancel()


def test_keys_of_another_issuer_do_not_count() -> None:
    scene = Scene()
    scene.put(b"one", source="https://other.example")
    assert (scene.keys.keys("corp"), scene.keys.state("corp")) == (None, "never")
    version = scene.keys.version
    scene.issuers = {"corp": Issuer("corp", "https://other.example", ("smg",))}
    scene.keys.look()
    assert scene.keys.state("corp") == "fresh"
    assert scene.keys.version > version
    assert scene.keys.keys("nobody") is None


def test_a_set_that_this_release_cannot_read_has_no_keys() -> None:
    scene = Scene()
    scene.put(b"broken")
    found = scene.keys.keys("corp")
    assert found is not None
    assert found.keys == ()


def test_denials_count_at_once_and_are_another_version() -> None:
    scene = Scene()
    now_ms, version = scene.clock.now_ms(), scene.keys.version
    assert not scene.keys.denied("corp", "alice", now_ms)
    scene.others.denials.put(Denial("corp", "alice", now_ms + 5_000), wall_ms=now_ms)
    assert scene.keys.version == version + 1
    assert scene.keys.denied("corp", "alice", now_ms)
    assert not scene.keys.denied("other", "alice", now_ms)
    scene.clock.seconds += 5
    assert not scene.keys.denied("corp", "alice", now_ms)
