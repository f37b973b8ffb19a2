"""URL of a store, taken apart and checked; its password is in nothing that is printed.

memory:                      sqlite:///history.db  (relative)   sqlite:////var/lib/smg/history.db  (absolute)
none:                        postgresql://user:password@host:5432/database?pgbouncer=true
redis://host:6379/0          oracle://user:password@host:1521/service
rediss://host:6380/0         redis+cluster://one:6379,two:6379
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

import msgspec

URL_CHARS_MAX: Final = 4_096
_SCHEMES: Final[Mapping[str, str]] = {
    "memory": "memory",
    "none": "none",
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "oracle": "oracle",
    "redis": "redis",
    "rediss": "redis",
    "redis+cluster": "redis",
    "rediss+cluster": "redis",
}
_WITHOUT_ADDRESS: Final = frozenset({"memory", "none"})
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(.*)", re.DOTALL)
_SECRET: Final = re.compile(r"pass|pwd|secret|token|key|credential|auth", re.IGNORECASE)
_PORT_MAX: Final = 65_535


class StoreUrlError(ValueError):
    """A URL that names no store; says what is wrong with it, and nothing that may be a secret."""


class StoreUrl(msgspec.Struct, frozen=True):
    """Place of a store. `repr()` is that of `redacted()`: without passwords."""

    kind: str
    """memory, none, sqlite, postgresql, oracle, redis, or the scheme of a plug-in."""
    scheme: str
    """As it was written: `rediss` and `redis+cluster` are both of kind redis."""
    user: str = ""
    password: str = ""
    hosts: tuple[tuple[str, int], ...] = ()
    """Names or addresses, with their ports; 0 where none was given."""
    path: str = ""
    """A file (sqlite), a database or a service name, without the first slash."""
    query: Mapping[str, str] = MappingProxyType({})

    def redacted(self) -> str:
        """Return it as it can be shown: with `***` for every password and whatever may be one."""
        return self._written(secret="***")

    def text(self) -> str:
        """Return it as it was written, password and all: for drivers, never for people."""
        return self._written(secret="")

    def _written(self, *, secret: str) -> str:
        if not self.hosts and not self.path and not self.query and not self.user:
            return f"{self.scheme}:" + ("//" if self.kind not in _WITHOUT_ADDRESS else "")
        password = f":{secret or quote(self.password, safe='')}" if self.password else ""
        user = f"{quote(self.user, safe='')}{password}@" if self.user or self.password else ""
        hosts = ",".join(_host_text(host, port) for host, port in self.hosts)
        path = f"/{quote(self.path, safe='/:.~-_')}" if self.path else ""
        pairs = [
            (name, secret if secret and _SECRET.search(name) else value)
            for name, value in self.query.items()
        ]
        asked = f"?{urlencode(pairs, safe='*/')}" if pairs else ""
        return f"{self.scheme}://{user}{hosts}{path}{asked}"

    def __repr__(self) -> str:
        return f"StoreUrl({self.redacted()!r})"

    def __str__(self) -> str:
        return self.redacted()


def parse_store_url(url: str, *, plugged_in: tuple[str, ...] = ()) -> StoreUrl:
    """Take a store's URL apart; StoreUrlError says what is wrong. `plugged_in` are schemes known besides our own."""
    if len(url) > URL_CHARS_MAX:
        raise StoreUrlError(f"a store's URL has at most {URL_CHARS_MAX} characters")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise StoreUrlError("a store's URL has no white space and no control characters")
    matched = _SCHEME.fullmatch(url)
    if matched is None:
        raise StoreUrlError("a store's URL begins with what it is: memory:, sqlite:///, redis://")
    scheme, rest = matched[1].lower(), matched[2]
    kind = _kind_of(scheme, plugged_in)
    if kind in _WITHOUT_ADDRESS:
        if rest:
            raise StoreUrlError(f"nothing comes after {scheme}:")
        return StoreUrl(kind=kind, scheme=scheme)
    if not rest.startswith("//"):
        raise StoreUrlError(f"after {scheme}: come two slashes")
    parsed = _address(kind, scheme, rest[2:])
    _check(parsed)
    return parsed


def _kind_of(scheme: str, plugged_in: tuple[str, ...]) -> str:
    if scheme in plugged_in:
        return scheme
    bare = scheme.removesuffix("+asyncpg").removesuffix("+oracledb_async").removesuffix("+oracledb")
    kind = _SCHEMES.get(bare)
    if kind is not None:
        return kind
    known = sorted({*_SCHEMES, *plugged_in})
    near = get_close_matches(scheme, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    raise StoreUrlError(f"no store is called {scheme!r}; {hint}")


def _address(kind: str, scheme: str, rest: str) -> StoreUrl:
    before, _, asked = rest.partition("?")
    if "#" in rest:
        raise StoreUrlError("a store's URL has no #: write %23 where a password has one")
    authority, _, path = before.partition("/")
    credentials, at, hosts = authority.rpartition("@")
    user, _, password = credentials.partition(":") if at else ("", "", "")
    return StoreUrl(
        kind=kind,
        scheme=scheme,
        user=unquote(user),
        password=unquote(password),
        hosts=tuple(_host(scheme, host) for host in hosts.split(",")) if hosts else (),
        path=unquote(path),
        query=MappingProxyType(dict(parse_qsl(asked, keep_blank_values=True))),
    )


def _host(scheme: str, text: str) -> tuple[str, int]:
    """Return a host and its port; what is wrong is said without the text, which may be half a password."""
    matched = re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[^\[\]:@]+)(?::(\d{1,5}))?", text)
    if matched is None:
        raise StoreUrlError(
            f"{scheme}:// needs host[:port]; write characters such as @ : / of a password as %40 %3A %2F"
        )
    port = int(matched[2] or 0)
    if port > _PORT_MAX or (matched[2] is not None and port == 0):
        raise StoreUrlError(f"a port of {scheme}:// is between 1 and {_PORT_MAX}")
    return matched[1].strip("[]"), port


def _host_text(host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{port}" if port else name


def _check(url: StoreUrl) -> None:
    """Refuse what can be taken apart and still means nothing."""
    # PostgreSQL may be reached over a socket, which stands in the query as `host`.
    socket = url.kind == "postgresql" and url.query.get("host")
    if url.kind == "sqlite":
        _check_file(url)
    elif url.kind in ("postgresql", "oracle", "redis") and not url.hosts and not socket:
        raise StoreUrlError(f"{url.scheme}:// needs a host")
    if url.kind in ("postgresql", "oracle") and not url.path:
        raise StoreUrlError(f"{url.scheme}://host/… needs the name of a database")
    if url.kind == "redis":
        _check_redis(url)
    elif len(url.hosts) > 1 and url.kind in ("oracle", "sqlite"):
        raise StoreUrlError(f"{url.scheme}:// takes one host")


def _check_file(url: StoreUrl) -> None:
    if url.path == ":memory:" or url.query.get("mode") == "memory":
        raise StoreUrlError("SQLite in memory is another database on each connection: use memory:")
    if url.hosts or url.user:
        raise StoreUrlError(
            "sqlite: needs three slashes and a file, sqlite:///history.db, or four for an absolute path"
        )
    if not url.path or url.path.endswith("/"):
        raise StoreUrlError("sqlite:/// needs a file")


def _check_redis(url: StoreUrl) -> None:
    clustered = url.scheme.endswith("+cluster")
    if clustered and url.path.strip("/") not in ("", "0"):
        raise StoreUrlError("a Redis cluster has no numbered databases")
    if not clustered and len(url.hosts) > 1:
        raise StoreUrlError(f"{url.scheme}:// takes one host; several are redis+cluster://")
    if url.path and not re.fullmatch(r"\d{1,4}", url.path):
        raise StoreUrlError(f"{url.scheme}://host/… ends in the number of a database")
