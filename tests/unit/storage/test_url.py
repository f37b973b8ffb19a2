from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_storage.url import URL_CHARS_MAX, StoreUrl, StoreUrlError, parse_store_url

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("memory:", StoreUrl("memory", "memory")),
        ("none:", StoreUrl("none", "none")),
        ("MEMORY:", StoreUrl("memory", "memory")),
        ("sqlite:///history.db", StoreUrl("sqlite", "sqlite", path="history.db")),
        ("sqlite:////var/lib/h.db", StoreUrl("sqlite", "sqlite", path="/var/lib/h.db")),
        ("sqlite:///with%20room.db", StoreUrl("sqlite", "sqlite", path="with room.db")),
        (
            "postgresql://ann:p%40ss@db.example:5433/smg?pgbouncer=true",
            StoreUrl(
                "postgresql",
                "postgresql",
                user="ann",
                password="p@ss",
                hosts=(("db.example", 5433),),
                path="smg",
                query={"pgbouncer": "true"},
            ),
        ),
        ("postgres://h/d", StoreUrl("postgresql", "postgres", hosts=(("h", 0),), path="d")),
        (
            "postgresql+asyncpg://h/d",
            StoreUrl("postgresql", "postgresql+asyncpg", hosts=(("h", 0),), path="d"),
        ),
        (
            "postgresql:///d?host=/run/postgresql",
            StoreUrl("postgresql", "postgresql", path="d", query={"host": "/run/postgresql"}),
        ),
        (
            "postgresql://a,b:6432/d",
            StoreUrl("postgresql", "postgresql", hosts=(("a", 0), ("b", 6432)), path="d"),
        ),
        ("oracle://u@h:1521/XE", StoreUrl("oracle", "oracle", "u", "", (("h", 1521),), "XE")),
        ("redis://h", StoreUrl("redis", "redis", hosts=(("h", 0),))),
        ("redis://:pw@h:6380/2", StoreUrl("redis", "redis", "", "pw", (("h", 6380),), "2")),
        ("rediss://[::1]:6380", StoreUrl("redis", "rediss", hosts=(("::1", 6380),))),
        (
            "redis+cluster://a:1,b:2",
            StoreUrl("redis", "redis+cluster", hosts=(("a", 1), ("b", 2))),
        ),
    ],
)
def test_a_url_is_taken_apart_and_put_together_again(url: str, expected: StoreUrl) -> None:
    parsed = parse_store_url(url)
    assert parsed == expected
    assert parse_store_url(parsed.text()) == parsed


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("", "begins with what it is"),
        ("history.db", "begins with what it is"),
        ("//h/d", "begins with what it is"),
        ("memory:x", "nothing comes after memory:"),
        ("none://", "nothing comes after none:"),
        ("mysql://h/d", "no store is called 'mysql'; known: memory, none, oracle"),
        ("sqllite:///x", "did you mean sqlite?"),
        ("redis:h", "after redis: come two slashes"),
        ("sqlite:///:memory:", "use memory:"),
        ("sqlite:///x?mode=memory", "use memory:"),
        ("sqlite://history.db", "three slashes"),
        ("sqlite:///", "needs a file"),
        ("sqlite:///folder/", "needs a file"),
        ("postgresql://h", "name of a database"),
        ("postgresql:///d", "needs a host"),
        ("oracle://h/", "name of a database"),
        ("oracle://a,b/d", "takes one host"),
        ("redis://", "needs a host"),
        ("redis://a,b", "several are redis+cluster"),
        ("redis+cluster://a/3", "no numbered databases"),
        ("redis://h/zero", "number of a database"),
        ("redis://h:0", "between 1 and 65535"),
        ("redis://h:70000", "between 1 and 65535"),
        ("redis://h:6379:1", "needs host[:port]"),
        ("redis://h/0 ", "no white space"),
        ("redis://h/0\n", "no white space"),
        ("postgresql://h/d#x", "no #"),
        ("x" * (URL_CHARS_MAX + 1), "at most"),
    ],
)
def test_a_url_that_is_wrong_is_told_so(url: str, what: str) -> None:
    with pytest.raises(StoreUrlError) as told:
        parse_store_url(url)
    assert what in str(told.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@h:5432/d",
        f"postgresql://h/d?password={SECRET}&sslmode=require",
        f"postgresql://h/d?sslPassword={SECRET}",
        f"oracle://u:{SECRET}@h/d?wallet_password={SECRET}",
        f"rediss://:{SECRET}@h",
        f"redis+cluster://default:{SECRET}@a:1,b:2",
    ],
)
def test_a_password_is_in_nothing_that_is_printed(url: str) -> None:
    parsed = parse_store_url(url)
    for text in (parsed.redacted(), str(parsed), repr(parsed), f"{parsed}", f"{[parsed]}"):
        assert SECRET not in text
        assert "***" in text
    assert SECRET in parsed.text()


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}/x@h:5432/d",
        f"postgresql://ann:{SECRET}#x@h/d",
        f"postgresql://ann:{SECRET}@h:99999/d",
        f"postgresql://ann:{SECRET}@h",
        f"postgresql://ann:{SECRET}@/d",
        f"redis://:{SECRET}@a,b",
        f"redis://:{SECRET} @a",
        f"redis+cluster://:{SECRET}@a/7",
        f"sqlite://u:{SECRET}@h/x",
        f"mysql://u:{SECRET}@h/x",
        f"redis:u:{SECRET}@h",
    ],
)
def test_a_password_is_in_no_error(url: str) -> None:
    with pytest.raises(StoreUrlError) as told:
        parse_store_url(url)
    assert SECRET not in str(told.value)
    assert told.value.__cause__ is None


def test_the_scheme_of_a_plug_in_is_known() -> None:
    parsed = parse_store_url("etcd://h:2379/x", plugged_in=("etcd",))
    assert (parsed.kind, parsed.hosts, parsed.path) == ("etcd", (("h", 2379),), "x")
    with pytest.raises(StoreUrlError, match="did you mean etcd"):
        parse_store_url("etdc://h", plugged_in=("etcd",))


@given(st.one_of(st.text(), st.from_regex(r"\A(redis|postgresql|sqlite|oracle)://?/?.{0,40}\Z")))
def test_any_text_is_a_url_or_told_why_not(text: str) -> None:
    with suppress(StoreUrlError):
        parsed = parse_store_url(text)
        assert parse_store_url(parsed.text()) == parsed


_word = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, categories=("L", "N", "P")), min_size=1
)


@given(user=_word, password=_word, path=_word)
def test_any_password_goes_through_a_url_and_comes_out_again(
    user: str, password: str, path: str
) -> None:
    made = StoreUrl("postgresql", "postgresql", user, password, (("h", 1),), path)
    assert parse_store_url(made.text()) == made
    if len(password) > 8:
        assert password not in made.redacted().replace(user, "").replace(path, "")
