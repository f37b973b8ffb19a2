"""Domains that a search may or may not show, as requests of both vendors say them, enforced on what came back. Pure.

`example.com` means it and all names below it; `example.com/blog` only what lies there; one `*` stands for anything in a
path. An address is compared as a browser would go to it, so what two readers take for different hosts is no address.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

URL_CHARACTERS_MAX: Final = 2_048
_DOMAINS_MAX: Final = 500
_NO_ADDRESS: Final = re.compile(r"[\x00-\x20\x7f-\xa0\\<>\"`{}|^\u2028\u2029]")
_NO_HOST: Final = re.compile(r"[\x00-\x20\x7f\"#%/:<>?@\[\\\]^`{|}\ufffd]")
"""What the name of a host cannot hold once it is decoded."""
_DOT: Final = re.compile("%2e", re.IGNORECASE)
_HOST_DOTS: Final = re.compile("[.\u3002\uff0e\uff61]")
_KEPT: Final = re.compile("[\u00df\u03c2\u200c\u200d]")
"""Characters that are letters of their own to browsers: an older reading makes other ones, or none, of them."""
_SCHEME: Final = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)


class DomainRule(NamedTuple):
    """Domains of which all that is shown must be, none for any, and those of which nothing is."""

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    def allows(self, url: str) -> bool:
        """Return whether something at this address may be shown; what has no address only where any may."""
        place = _place(url)
        if place is None:
            return not self.allowed
        if any(_within(place, domain) for domain in self.blocked):
            return False
        return not self.allowed or any(_within(place, domain) for domain in self.allowed)


def domain_rule(settings: Mapping[str, Any]) -> DomainRule:
    """Return the rule of a tool object: its own lists, and those among its `filters`."""
    filters = settings.get("filters")
    places = (settings, filters) if isinstance(filters, dict) else (settings,)
    allowed, blocked = (
        tuple(domain for place in places for domain in _domains(place.get(key)))[:_DOMAINS_MAX]
        for key in ("allowed_domains", "blocked_domains")
    )
    return DomainRule(allowed, blocked)


def web_address(text: str) -> str:
    """Return a text as the http address that it is, "" where it is none."""
    url = text.strip()
    return url if _place(url) is not None else ""


def _domains(value: Any) -> Iterable[str]:
    """Return the domains of a list, without a scheme."""
    for domain in value if isinstance(value, list | tuple) else ():
        if isinstance(domain, str) and (bare := _SCHEME.sub("", domain.strip())):
            yield bare


def _place(url: str) -> tuple[str, str] | None:
    """Return host and path of an http address, None for anything else."""
    if len(url) > URL_CHARACTERS_MAX or _NO_ADDRESS.search(url):
        return None
    try:
        parts = urlsplit(url)
        host = _host(parts.hostname or "")
        _ = parts.port  # raises where it is none
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not host:
        return None
    return host, _resolved(parts.path)


def _resolved(path: str) -> str:
    """Return a path without dots that lead elsewhere."""
    segments: list[str] = []
    for segment in _DOT.sub(".", path).split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment != ".":
            segments.append(segment)
    return "/".join(segments) or "/"


def _within(place: tuple[str, str], domain: str) -> bool:
    host, path = place
    name, slash, below = domain.partition("/")
    try:
        wanted = _host(name)
    except ValueError:
        return False
    if not wanted or (host != wanted and not host.endswith("." + wanted)):
        return False
    if not slash or not below:
        return True
    before, star, after = below.partition("*")
    shown = path.removeprefix("/")
    if not star:
        return shown == before or shown.startswith(before.rstrip("/") + "/")
    return shown.startswith(before) and after in shown[len(before) :]


def _host(name: str) -> str:
    """Return a host as it is looked up: decoded, lower case, in ASCII, without a dot at its end; ValueError for none."""
    bare = name.strip().removeprefix("*.")
    if "%" in bare:
        bare = unquote(bare)
        if _NO_HOST.search(bare):
            raise ValueError("no name of a host")
    bare = bare.rstrip(".").lower()
    if bare.isascii():
        return bare
    named = ".".join(map(_label, _HOST_DOTS.split(bare)))
    return named.rstrip(".")


def _label(label: str) -> str:
    if not _KEPT.search(label):
        return label.encode("idna").decode()
    return "xn--" + unicodedata.normalize("NFKC", label).encode("punycode").decode()
