"""History in PostgreSQL over TLS: a real server with a certificate of its own, which it may ask clients for, too."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import text

from smg_node.config.store_tls import secured
from smg_storage.options import StoreOptions
from smg_storage.sql.database_urls import postgresql_engine
from smg_storage.url import StoreUrl, parse_store_url
from support.http.certificate_authority import Authority
from support.stores.postgres_server import Postgres, running_postgres
from support.stores.sql_stores import tell

pytestmark = pytest.mark.integration
SHAKEN = "SELECT ssl, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with running_postgres(tmp_path_factory.mktemp("postgres"), own=True) as running:
        yield running


@contextmanager
def files(authority: Authority, owner: int) -> Iterator[Mapping[str, Path]]:
    """Write the server's certificate where its own user can read it, and nobody else its key."""
    certificate, key = authority.issue("localhost")
    with tempfile.TemporaryDirectory(prefix="smg-tls-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        written = {"cert": certificate, "key": key, "ca": authority.certificate}
        for kind, content in written.items():
            path = folder / kind
            path.write_bytes(content)
            path.chmod(0o600 if kind == "key" else 0o644)
            if os.geteuid() == 0:
                os.chown(path, owner, -1)
        yield {kind: folder / kind for kind in written}


async def told(url: StoreUrl, statement: str) -> list[tuple[object, ...]]:
    engine = postgresql_engine(url, StoreOptions(pool_size=1, connect_timeout_s=10))
    try:
        async with engine.connect() as connection:
            return [tuple(row) for row in await connection.execute(text(statement))]
    finally:
        await engine.dispose()


async def test_files_of_the_settings_and_modes_in_the_url_are_what_the_server_is_asked_with(
    server: Postgres, tmp_path: Path
) -> None:
    mine, other = Authority("mine"), Authority("other")
    ((place,),) = await tell(server.url, "SHOW data_directory")
    owner = os.stat(str(place)).st_uid
    with files(mine, owner) as shown:
        for name in ("cert", "key", "ca"):
            await tell(server.url, f"ALTER SYSTEM SET ssl_{name}_file = '{shown[name]}'")
        await tell(server.url, "ALTER SYSTEM SET ssl = on")
        await tell(server.url, "SELECT pg_reload_conf()")
        plain = parse_store_url(server.url.replace("127.0.0.1", "localhost"))
        known, wrong = tmp_path / "ca.pem", tmp_path / "other.pem"
        known.write_bytes(mine.certificate)
        wrong.write_bytes(other.certificate)
        assert await told(secured(plain, authority=str(known)), SHAKEN) == [(True, None)]
        certificate, key = mine.issue("node")
        (tmp_path / "tls.crt").write_bytes(certificate)
        (tmp_path / "tls.key").write_bytes(key)
        (tmp_path / "tls.key").chmod(0o600)
        both = secured(
            plain,
            authority=str(known),
            certificate=str(tmp_path / "tls.crt"),
            key=str(tmp_path / "tls.key"),
        )
        assert await told(both, SHAKEN) == [(True, "/CN=node")]
        by_url = f"{plain.text()}?sslmode=verify-full&sslrootcert={quote(str(known))}"
        assert await told(parse_store_url(by_url), SHAKEN) == [(True, None)]
        for refused in (
            secured(plain, authority=str(wrong)),
            parse_store_url(by_url.replace("localhost", "127.0.0.1")),
        ):
            with pytest.raises(Exception, match="certificate verify failed"):
                await told(refused, SHAKEN)
