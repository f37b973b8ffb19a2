"""Spec checks: what must hold of a provider's fields beyond their types, so that a URL can be made of them. Pure."""

import re
from collections.abc import Mapping
from typing import Final

from smg_node.providers.hosting import Hosting
from smg_node.providers.parsing.plain_values import chosen, shown, wrong
from smg_node.providers.provider_spec import CACHE_SCOPES, STATES, ProviderSpec

LABELS_MAX: Final = 32
_HOST_WORD: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_PATH_WORD: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._:-]{0,126}[A-Za-z0-9])?", re.ASCII)
_HEADER: Final = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_QUIRK: Final = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_URL: Final = re.compile(
    r"https?://(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?(?:/[\w.~%!$&'()*+,;=:@-]*)*",
    re.ASCII | re.IGNORECASE,
)
_PROXY: Final = re.compile(r"https?://[^\s/?#@]{1,300}/?", re.ASCII)
_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./-]{0,61}[A-Za-z0-9])?", re.ASCII)
_KEPT_HEADERS: Final = frozenset(
    [
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "proxy-authorization",
        "te",
        "transfer-encoding",
        "upgrade",
        "x-amz-date",
        "x-amz-security-token",
        "x-api-key",
        "x-goog-api-key",
        "api-key",
    ]
)
"""Headers that this node sets itself, or that are between it and its client."""
_FIELD_FORMS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "region": (_HOST_WORD, "small letters, digits and dashes, as eu-central-1"),
    "location": (_HOST_WORD, "small letters, digits and dashes, as europe-west4 or global"),
    "resource": (_HOST_WORD, "small letters, digits and dashes: the first part of its host name"),
    "project": (_PATH_WORD, "the id of a project"),
    "organization": (_PATH_WORD, "the id of an organization"),
    "workspace": (_PATH_WORD, "the id of a workspace"),
    "api_version": (_PATH_WORD, "a version, as v1beta or 2025-03-01-preview"),
    "anthropic_version": (_PATH_WORD, "a version, as 2026-10-21"),
    "key_header": (_HEADER, "the name of a header in small letters, as x-api-key"),
    "proxy": (_PROXY, "a URL without a path or a password, as http://proxy:3128"),
}
_OTHER_NAMES: Final[Mapping[str, str]] = {"location": "region", "region": "location"}


def check_spec(spec: ProviderSpec, hosting: Hosting, path: str) -> None:
    """Raise INVALID_REQUEST with the path of what does not go together."""
    for name, (form, example) in _FIELD_FORMS.items():
        value = getattr(spec, name)
        if value and not form.fullmatch(value):
            raise wrong(f"{path}.{name}", f"{shown(value)} is not {example}")
    _check_base(spec, hosting, path)
    _check_needs(spec, hosting, path)
    chosen(spec.state, STATES, f"{path}.state")
    chosen(spec.cache_scope, CACHE_SCOPES, f"{path}.cache_scope")
    _check_lists(spec, hosting, path)


def _check_base(spec: ProviderSpec, hosting: Hosting, path: str) -> None:
    if not spec.base:
        return
    path = f"{path}.base"
    if not _URL.fullmatch(spec.base):
        raise wrong(
            path,
            f"{shown(spec.base)} is no URL of a vendor: no query, password or fragment,"
            " as https://api.example.com/v1",
        )
    last = spec.base.rpartition("/")[2]
    paths = [route.path for route in hosting.routes.values()]
    if re.fullmatch(r"v\d\w*", last) and all(one.startswith(("/v1", "/{api")) for one in paths):
        raise wrong(path, f"ends in /{last}, which {hosting.kind} adds itself: leave it out")


def _check_needs(spec: ProviderSpec, hosting: Hosting, path: str) -> None:
    needs = hosting.needs if spec.base else (*hosting.needs, *hosting.base_needs)
    for name in needs:
        if getattr(spec, name):
            continue
        other = _OTHER_NAMES.get(name)
        given = f"; {other} is not it" if other and getattr(spec, other) else ""
        raise wrong(f"{path}.{name}", f"is missing: {hosting.kind} needs it{given}")


def _check_lists(spec: ProviderSpec, hosting: Hosting, path: str) -> None:
    for at, name in enumerate(spec.headers):
        if not _HEADER.fullmatch(name) or name in _KEPT_HEADERS:
            raise wrong(f"{path}.headers[{at}]", f"{shown(name)} is no header that may pass")
    if spec.key_header in _KEPT_HEADERS - {"x-api-key", "x-goog-api-key", "api-key"}:
        raise wrong(f"{path}.key_header", f"{shown(spec.key_header)} cannot hold a key")
    _check_quirks(spec.quirks, f"{path}.quirks")
    if len(spec.labels) > LABELS_MAX:
        raise wrong(f"{path}.labels", f"has more than {LABELS_MAX} labels")
    for key, value in spec.labels.items():
        if not _LABEL.fullmatch(key) or not value.isprintable() or len(value) > 256:
            raise wrong(f"{path}.labels.{key[:80]}", "must be a short word with a short value")
    for at, model in enumerate(spec.models):
        place = f"{path}.models[{at}]"
        for number, dialect in enumerate(model.dialects):
            chosen(
                dialect,
                hosting.dialects,
                f"{place}.dialects[{number}]",
                whose=f"{hosting.kind} speaks",
            )
        _check_quirks(model.quirks, f"{place}.quirks")


def _check_quirks(quirks: tuple[str, ...], path: str) -> None:
    for at, name in enumerate(quirks):
        if not _QUIRK.fullmatch(name):
            raise wrong(f"{path}[{at}]", f"{shown(name)} is no name of a quirk, as finish_optional")
