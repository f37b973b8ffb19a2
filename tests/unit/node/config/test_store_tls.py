import pytest

from smg_node.config.store_tls import secured, shows_password
from smg_storage.url import StoreUrlError, parse_store_url


def test_files_are_put_into_the_url_as_each_driver_calls_them() -> None:
    files = {"authority": "ca.pem", "certificate": "tls.crt", "key": "tls.key"}
    database = secured(parse_store_url("postgresql://u@h/d?pgbouncer=true"), **files)
    assert dict(database.query) == {
        "pgbouncer": "true",
        "sslmode": "verify-full",
        "sslrootcert": "ca.pem",
        "sslcert": "tls.crt",
        "sslkey": "tls.key",
    }
    redis = secured(parse_store_url("rediss+cluster://h,i:1"), **files)
    assert dict(redis.query) == {
        "ssl_ca_certs": "ca.pem",
        "ssl_certfile": "tls.crt",
        "ssl_keyfile": "tls.key",
    }
    alone = secured(parse_store_url("rediss://h"), authority="ca.pem")
    assert dict(alone.query) == {"ssl_ca_certs": "ca.pem"}


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("memory:", "not for memory"),
        ("sqlite:///a.db", "not for sqlite"),
        ("oracle://u@h/s", "not for oracle"),
        ("redis://h", "needs rediss://, and not redis://"),
        ("redis+cluster://h", "needs rediss://"),
        ("postgresql://h/d?sslmode=require", "sslmode of the URL"),
        ("rediss://h?ssl_ca_certs=x", "ssl_ca_certs of the URL"),
    ],
)
def test_where_files_are_of_no_use_that_is_said(url: str, why: str) -> None:
    with pytest.raises(StoreUrlError, match=why):
        secured(parse_store_url(url), authority="ca.pem")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p@db.example/d", True),
        ("postgresql://u:p@localhost,db.example/d", True),
        ("postgresql://u:p@10.0.0.7/d?sslmode=prefer", True),
        ("postgresql://u:p@10.0.0.7/d?sslmode=disable", True),
        ("postgresql://u:p@10.0.0.7/d?sslmode=verify-full", False),
        ("postgresql://u:p@10.0.0.7/d?ssl=require", False),
        ("postgresql://u@db.example/d", False),
        ("postgresql://u:p@127.0.0.1/d", False),
        ("postgresql://u:p@[::1]/d", False),
        ("postgresql://u:p@localhost/d", False),
        ("postgresql://u:p@/d?host=/run/postgresql", False),
        ("redis://:p@cache.example", True),
        ("redis+cluster://:p@a,b", True),
        ("rediss://:p@cache.example", False),
        ("redis://cache.example", False),
        ("memory:", False),
    ],
)
def test_a_password_that_crosses_a_network_in_plain_text_is_noticed(url: str, shown: bool) -> None:
    assert shows_password(parse_store_url(url)) is shown
