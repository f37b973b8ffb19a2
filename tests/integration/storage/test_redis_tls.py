"""History over TLS: the server is a real one, with TLS in front of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from smg_node.config.store_tls import secured
from smg_storage.errors import StoreErrorKind
from smg_storage.url import parse_store_url
from support.http.certificate_authority import Authority
from support.http.tls_proxy import tls_front, written
from support.store_contract.maker import Clock, Opened
from support.store_contract.stage import Stage, ids, refused
from support.stores.redis_server import Redis
from support.stores.redis_stores import new_prefix, redis_store

pytestmark = pytest.mark.integration
UNAVAILABLE = StoreErrorKind.UNAVAILABLE


@pytest.fixture
def authority() -> Authority:
    return Authority("the operator's own")


def url_of(port: int, **files: str) -> str:
    return f"rediss://localhost:{port}/0?{urlencode(files)}"


@asynccontextmanager
async def staged(url: str) -> AsyncIterator[Stage]:
    clock = Clock()
    async with redis_store(url, clock, new_prefix()) as store:
        yield Stage(Opened(store, store, clock))


async def assert_works(url: str) -> None:
    async with staged(url) as stage:
        turn = stage.turn(await stage.new_conversation(), items=3)
        await stage.store.commit_turn(stage.access, turn)
        assert await stage.listed(turn.response.conversation_id) == ids(turn.items)
        chain = await stage.chain_of(3)
        assert ids((await stage.chain(chain[-1].id)).responses) == ids(chain[::-1])


async def test_history_is_kept_over_tls(redis: Redis, authority: Authority, tmp_path: Path) -> None:
    known = written(tmp_path, "ca.pem", authority.certificate)
    async with tls_front(redis.port, authority, tmp_path, "localhost") as front:
        await assert_works(url_of(front.port, ssl_ca_certs=known))
        assert front.admitted > 0


async def test_files_of_the_settings_are_put_into_the_url(
    redis: Redis, authority: Authority, tmp_path: Path
) -> None:
    known = written(tmp_path, "ca.pem", authority.certificate)
    certificate, key = authority.issue("node")
    shown = (written(tmp_path, "our.crt", certificate), written(tmp_path, "our.key", key))
    async with tls_front(redis.port, authority, tmp_path, "localhost", clients=True) as front:
        plain = parse_store_url(f"rediss://localhost:{front.port}/0")
        whole = secured(plain, authority=known, certificate=shown[0], key=shown[1])
        await assert_works(whole.text())
        with refused(UNAVAILABLE):
            await assert_works(secured(plain, authority=known).text())


async def test_a_server_that_nobody_vouches_for_is_not_talked_to(
    redis: Redis, authority: Authority, tmp_path: Path
) -> None:
    other = written(tmp_path, "other.pem", Authority("somebody else").certificate)
    async with tls_front(redis.port, authority, tmp_path, "localhost") as front:
        for url in (url_of(front.port, ssl_ca_certs=other), f"rediss://localhost:{front.port}"):
            with refused(UNAVAILABLE):
                async with staged(url):
                    pass
        assert front.admitted == 0


async def test_a_certificate_for_another_name_does_not_do(
    redis: Redis, authority: Authority, tmp_path: Path
) -> None:
    known = written(tmp_path, "ca.pem", authority.certificate)
    async with tls_front(redis.port, authority, tmp_path, "elsewhere.example") as front:
        with refused(UNAVAILABLE):
            async with staged(url_of(front.port, ssl_ca_certs=known)):
                pass


async def test_a_server_that_asks_who_we_are_is_told(
    redis: Redis, authority: Authority, tmp_path: Path
) -> None:
    known = written(tmp_path, "ca.pem", authority.certificate)
    certificate, key = authority.issue("node")
    ours = {
        "ssl_ca_certs": known,
        "ssl_certfile": written(tmp_path, "node.pem", certificate),
        "ssl_keyfile": written(tmp_path, "node.key", key),
    }
    async with tls_front(redis.port, authority, tmp_path, "localhost", clients=True) as front:
        with refused(UNAVAILABLE):
            async with staged(url_of(front.port, ssl_ca_certs=known)):
                pass
        assert front.admitted == 0
        await assert_works(url_of(front.port, **ours))


async def test_who_forgets_tls_is_not_let_in(
    redis: Redis, authority: Authority, tmp_path: Path
) -> None:
    async with tls_front(redis.port, authority, tmp_path, "localhost") as front:
        with refused(UNAVAILABLE):
            async with staged(f"redis://localhost:{front.port}"):
                pass
        assert front.admitted == 0
