"""Provider URL: scheme, host, path and query of a call, from a hosting's row and what is known of the place. Pure.

A model's name is percent-encoded once, and nothing encodes it again: a signature is over these bytes.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from smg_node.core.errors import SmgError, invalid
from smg_node.providers.hosting import Hosting, Route

MODEL_MAX_CHARACTERS: Final = 2_048
"""Names of inference profiles are ARNs of up to 2,048 characters."""
_MULTI_REGIONS: Final = ("us", "eu")
_FIELD: Final = re.compile(r"\{(\w+)([.?]?)\}")
_GOOGLE_COLLECTIONS: Final = ("models/", "tunedModels/", "publishers/", "projects/", "endpoints/")


class Site(msgspec.Struct, frozen=True):
    """Where one account is at its vendor; "" for what it has not. `base` stands for all that a base is made of."""

    base: str = ""
    region: str = ""
    location: str = ""
    project: str = ""
    workspace: str = ""
    resource: str = ""
    api_version: str = ""


class ProviderUrl(msgspec.Struct, frozen=True):
    """The address of one call: as it goes on the wire. `path` is encoded, `query` is without its mark."""

    origin: str
    path: str
    query: str = ""

    @property
    def host(self) -> str:
        """The value of the Host header."""
        return self.origin.partition("://")[2]

    @property
    def target(self) -> str:
        """Path and query, as in a request's first line."""
        return f"{self.path}?{self.query}" if self.query else self.path

    def __str__(self) -> str:
        return self.origin + self.target


def provider_url(
    hosting: Hosting, site: Site, route: Route, model: str, *, streamed: bool
) -> ProviderUrl:
    """Return where a call of that route goes; INVALID_REQUEST for a name that no path can hold."""
    origin, prefix = base_of(hosting, site)
    values = {
        **_values(hosting, site),
        "model": model_path(hosting, model) if "{model}" in route.path else "",
    }
    template = route.streamed if streamed and route.streamed else route.path
    if hosting.google_models and values["model"].startswith("projects/"):
        # A name that is a whole path begins anew behind the version.
        template = "/{api_version}/" + template[template.index("{model}") :]
    queries = (route.query, route.streamed_query if streamed else "")
    query = "&".join(filter(None, (_filled(one, values) for one in queries)))
    return ProviderUrl(origin, prefix + _filled(template, values), query)


def base_of(hosting: Hosting, site: Site) -> tuple[str, str]:
    """Return the origin, `https://host`, and the path of the base, "" or `/v1`."""
    base = (site.base or _filled(hosting.base, _values(hosting, site))).rstrip("/")
    scheme, _, rest = base.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}", slash + path


def model_path(hosting: Hosting, model: str) -> str:
    """Return a model's name as part of a path, encoded once.

    At Google a name may be a path of its own. INVALID_REQUEST `model_not_found` for what is no name.
    """
    if not model or len(model) > MODEL_MAX_CHARACTERS or model in (".", ".."):
        raise _no_name(model)
    if not hosting.google_models:
        return quote(model, safe="")
    parts = model.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise _no_name(model)
    encoded = "/".join(quote(part, safe="") for part in parts)
    if model.startswith(_GOOGLE_COLLECTIONS):
        return encoded
    if len(parts) == 1:
        return f"{hosting.google_models}/{encoded}"
    if hosting.google_models == "models":
        raise _no_name(model)
    return f"publishers/{quote(parts[0], safe='')}/models/{'/'.join(map(_encoded, parts[1:]))}"


def _encoded(part: str) -> str:
    return quote(part, safe="")


def _no_name(model: str) -> SmgError:
    return invalid(f"{model[:80]!r} is no name of a model", "model", "model_not_found")


def _values(hosting: Hosting, site: Site) -> dict[str, str]:
    location = site.location or hosting.location
    values: dict[str, str] = {name: quote(getattr(site, name), safe=":") for name in _SITE_FIELDS}
    values["api_version"] = site.api_version or hosting.api_version
    values["location"] = quote(location, safe="")
    values["vertex"] = _vertex_host(location)
    values["aws"] = aws_domain(site.region)
    return values


_SITE_FIELDS: Final[Sequence[str]] = ("region", "project", "workspace", "resource")


def aws_domain(region: str) -> str:
    """Return the domain of AWS's regional services: China has one of its own."""
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"


def _vertex_host(location: str) -> str:
    if location in ("", "global"):
        return "aiplatform.googleapis.com"
    if location in _MULTI_REGIONS:
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-aiplatform.googleapis.com"


def _filled(template: str, values: Mapping[str, str]) -> str:
    """Return `template` with its fields: `{x.}` brings a dot along where there is an x, `{x?}` takes all away where
    there is none.
    """

    def value(found: re.Match[str]) -> str:
        said = values[found[1]]
        return f"{said}." if said and found[2] == "." else said

    if any(mark == "?" and not values[name] for name, mark in _FIELD.findall(template)):
        return ""
    return _FIELD.sub(value, template)
