from collections.abc import Mapping
from types import MappingProxyType

import msgspec
import pytest

from smg_storage.open import open_store
from smg_storage.options import SchemaNames, StoreOptions
from smg_storage.redis.server import Ask, RedisServer
from smg_storage.redis.store import RedisStore
from smg_storage.url import StoreUrlError, parse_store_url


def server(url: str, options: StoreOptions | None = None) -> RedisServer:
    return RedisServer(parse_store_url(url), options or StoreOptions(), lambda: 7)


def test_a_call_says_when_it_is_and_finds_what_is_binary() -> None:
    ask = Ask("commit", "smg:-:{5eed}", "smg:-:", "5eed", id="resp_1")
    numbers = [ask.blob(b"\0one"), ask.blob(b"\xfftwo")]
    told, *blobs = ask.packed(now_us=1_763_794_786_000_001, alone=True)
    asked: Mapping[str, object] = msgspec.json.decode(told)
    assert asked == {
        "call": "commit",
        "b": "smg:-:",
        "g": "5eed",
        "id": "resp_1",
        "now": 1_763_794_786_000_001,
        "alone": True,
    }
    # The first is the JSON, and Lua counts from one.
    assert [[told, *blobs][number - 1] for number in numbers] == [b"\0one", b"\xfftwo"]


async def test_a_store_is_opened_by_its_url_and_connects_to_nothing_yet() -> None:
    for url in ("redis://nowhere.invalid", "rediss://a:b@nowhere.invalid:1/3"):
        store = open_store(url, options=StoreOptions(), now_us=lambda: 7)
        assert isinstance(store, RedisStore)
        assert (store.kind, store.shared, store.warnings) == ("redis", True, ())
        await store.close()


async def test_only_a_single_server_has_everything_within_reach() -> None:
    alone, cluster = server("redis://one"), server("redis+cluster://one,two:7000")
    assert (alone.alone, cluster.alone) == (True, False)
    await alone.close()
    await cluster.close()


def test_the_prefix_of_keys_is_the_owner_of_the_schema() -> None:
    assert server("redis://one").keys.prefix == "smg"
    options = StoreOptions(schema=SchemaNames(owner="prod:history"))
    assert server("redis://one", options).keys.runs == "prod:history:runs"


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("redis://one?timeout=5", {}, "timeout"),
        ("redis://one?ssl_ca_certs=/ca.pem", {}, "rediss"),
        ("redis://one", {"schema": SchemaNames(owner="{x}")}, "prefix"),
        ("redis+cluster://one", {"redis_wait_replicas": 1}, "min-replicas-to-write"),
    ],
)
def test_what_means_nothing_is_refused_at_once(
    url: str, options: Mapping[str, object], said: str
) -> None:
    with pytest.raises(StoreUrlError, match=said):
        server(url, msgspec.structs.replace(StoreOptions(), **options))


def test_certificates_are_taken_from_the_url() -> None:
    assert server("rediss://one?ssl_ca_certs=/ca.pem").alone is True


def test_the_defaults_are_not_shared_between_stores() -> None:
    first, second = server("redis://one"), server("redis://one")
    assert first.keys is not second.keys
    assert isinstance(StoreOptions().schema.tables, MappingProxyType)
