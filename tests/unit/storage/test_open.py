import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from smg_storage import no_store as nothing
from smg_storage.memory.store import MemoryStore
from smg_storage.no_store import NoStore
from smg_storage.open import StoreRegistry, known_stores, open_store
from smg_storage.options import Bounds, StoreOptions
from smg_storage.store import HistoryStore
from smg_storage.url import StoreUrlError, parse_store_url
from support.store_contract.maker import Clock

DRIVERS = ("sqlalchemy", "asyncpg", "sqlite3", "redis", "oracledb", "alembic")


def opened(url: str, registry: StoreRegistry | None = None) -> HistoryStore:
    return open_store(url, options=StoreOptions(), now_us=Clock(), registry=registry)


def plugged_in(name: str, place: str) -> StoreRegistry:
    registry = known_stores()
    registry.add(EntryPoint(name, place, "smg.stores"))
    return registry


def test_a_url_opens_its_store() -> None:
    assert isinstance(opened("memory:"), MemoryStore)
    assert isinstance(opened("none:"), NoStore)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("sqlite:///history.db", "sqlite"),
        ("postgresql://h/d", "postgresql"),
        ("redis://h", "redis"),
        ("redis+cluster://a,b", "redis"),
    ],
)
async def test_a_store_of_a_driver_is_opened_without_connecting(url: str, kind: str) -> None:
    store = opened(url)
    assert store.kind == kind
    await store.close()


async def test_a_store_is_opened_with_its_options() -> None:
    options = StoreOptions(memory=Bounds(responses_max=7))
    store = open_store(parse_store_url("memory:"), options=options, now_us=Clock())
    assert isinstance(store, MemoryStore)
    assert store._shelf._bounds.responses_max == 7


def test_what_is_built_in_is_known() -> None:
    assert set(known_stores().kinds) >= {
        "memory",
        "none",
        "oracle",
        "postgresql",
        "redis",
        "sqlite",
    }


def test_a_plug_in_comes_through_the_same_door() -> None:
    registry = plugged_in("blackhole", f"{nothing.__name__}:open_store")
    assert isinstance(opened("blackhole://anywhere", registry), NoStore)


def test_a_name_is_taken_once() -> None:
    with pytest.raises(StoreUrlError, match="two stores called 'redis'"):
        plugged_in("redis", "somewhere:open_store")


def test_a_store_nobody_has_is_told_apart() -> None:
    with pytest.raises(StoreUrlError, match="no store is called 'blackhole'"):
        opened("blackhole://anywhere")


def test_a_package_that_is_not_installed_is_named() -> None:
    registry = plugged_in("nowhere", "package_of_nobody.store:open_store")
    with pytest.raises(StoreUrlError, match="nowhere needs the package 'package_of_nobody'"):
        opened("nowhere://h", registry)


def test_a_factory_that_is_not_there_is_named() -> None:
    registry = plugged_in("nowhere", f"{nothing.__name__}:open_nothing")
    with pytest.raises(StoreUrlError, match=r"no factory at smg_storage\.no_store:open_nothing"):
        opened("nowhere://h", registry)


@pytest.mark.parametrize("url", ["memory:", "none:"])
def test_a_store_without_a_driver_imports_none(url: str) -> None:
    code = (
        "import sys; from smg_storage.open import open_store;"
        "from smg_storage.options import StoreOptions;"
        f"open_store({url!r}, options=StoreOptions(), now_us=int);"
        f"print(sorted(set({DRIVERS!r}) & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.strip() == "[]"
