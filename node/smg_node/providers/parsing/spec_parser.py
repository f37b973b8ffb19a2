"""Spec parser: a provider from the plain values of YAML or JSON; every mistake is told with its path. Pure.

    anthropic-a: {kind: anthropic, keys: [file:/run/secrets/a1], labels: {zone: us}}
    bedrock-eu: {kind: bedrock, region: eu-central-1, credentials: {kind: aws}}

Secrets come out apart from the rest. What an operator misspells is an error here; only documents of other nodes may
hold what this one does not know.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from smg_node.providers.hosting import HOSTINGS
from smg_node.providers.parsing.credentials_parser import parse_credentials
from smg_node.providers.parsing.plain_values import (
    check_names,
    chosen,
    entries,
    secret,
    shown,
    word,
    words,
    wrong,
)
from smg_node.providers.parsing.spec_checks import check_spec
from smg_node.providers.provider_spec import ModelSpec, ProviderSecrets, ProviderSpec, Timeouts
from smg_node.providers.route_spec import ENGINES
from smg_node.providers.secret import Secret

KEYS_MAX: Final = 64
MODELS_MAX: Final = 1_024
NAMES_MAX: Final = 32
"""Headers, quirks and dialects of one provider or model."""
TIMEOUT_MAX_S: Final = 86_400.0
OUTPUT_MAX: Final = 100_000_000

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?", re.ASCII)
_WORDS: Final = (
    "base",
    "region",
    "location",
    "project",
    "organization",
    "workspace",
    "resource",
    "api_version",
    "anthropic_version",
    "key_header",
    "proxy",
    "state",
    "cache_scope",
)
_LISTS: Final = ("headers", "quirks")
_KNOWN: Final = (
    "kind",
    *_WORDS,
    *_LISTS,
    "keys",
    "credentials",
    "labels",
    "models",
    "client_keys",
    "cache_key_added",
    "timeouts",
)


class ParsedProvider(NamedTuple):
    """A provider's spec, and its secrets beside it."""

    spec: ProviderSpec
    secrets: ProviderSecrets


def parse_providers(said: object) -> Sequence[ParsedProvider]:
    """Return the providers of a mapping from names; INVALID_REQUEST as `parse_provider`."""
    named = entries(said, "providers", "{openai-a: {kind: openai, keys: [env:OPENAI_API_KEY]}}")
    return [parse_provider(name, one) for name, one in named.items()]


def parse_provider(name: object, said: object) -> ParsedProvider:
    """Return one provider; INVALID_REQUEST `invalid_provider` with the path of what is wrong."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise wrong(
            "providers",
            f"{shown(name)} is no name: use up to 63 small letters, digits, dots, dashes, underscores",
        )
    if name == ENGINES:
        raise wrong("providers", f"{ENGINES} is no name: targets of routes call own engines so")
    path = f"providers.{name}"
    told = entries(said, path, "{kind: openai, keys: [env:OPENAI_API_KEY]}")
    hosting = HOSTINGS[chosen(told.get("kind"), tuple(HOSTINGS), f"{path}.kind", whose="kinds")]
    check_names(told, _KNOWN, path)
    keys = _keys(told.get("keys"), f"{path}.keys")
    credentials, named = parse_credentials(
        told.get("credentials"), hosting, f"{path}.credentials", has_keys=bool(keys)
    )
    plain: dict[str, Any] = {
        **{key: word(told[key], f"{path}.{key}").rstrip("/") for key in _WORDS if key in told},
        **{key: words(told[key], f"{path}.{key}", most=NAMES_MAX) for key in _LISTS if key in told},
    }
    spec = ProviderSpec(
        name,
        hosting.kind,
        credentials=credentials,
        labels=_labels(told.get("labels", {}), f"{path}.labels"),
        models=_models(told.get("models", ()), f"{path}.models"),
        client_keys=_truth(told.get("client_keys", False), f"{path}.client_keys"),
        cache_key_added=_truth(told.get("cache_key_added", False), f"{path}.cache_key_added"),
        timeouts=_timeouts(told.get("timeouts", {}), f"{path}.timeouts"),
        **plain,
    )
    check_spec(spec, hosting, path)
    _check_keys(spec, keys, path)
    return ParsedProvider(spec, ProviderSecrets(keys, named))


def _check_keys(spec: ProviderSpec, keys: Sequence[Secret], path: str) -> None:
    kind = spec.credentials.kind
    if keys and kind != "keys":
        raise wrong(f"{path}.keys", f"cannot stand beside credentials of kind {kind}")
    if kind == "keys" and not keys and not spec.client_keys:
        raise wrong(
            f"{path}.keys",
            "is missing: give a key, as [file:/run/secrets/key], or credentials: {kind: none}",
        )
    if spec.client_keys and kind != "keys":
        raise wrong(f"{path}.client_keys", f"needs credentials of kind keys, not {kind}")


def _keys(said: object, path: str) -> tuple[Secret, ...]:
    listed = [] if said is None else said if isinstance(said, list | tuple) else [said]
    if len(listed) > KEYS_MAX:
        raise wrong(path, f"has more than {KEYS_MAX} keys")
    found = tuple(secret(one, f"{path}[{at}]") for at, one in enumerate(listed))
    if len({one.spelled for one in found}) < len(found):
        raise wrong(path, "has the same key twice")
    return found


def _truth(said: object, path: str) -> bool:
    if not isinstance(said, bool):
        raise wrong(path, "must be true or false")
    return said


def _labels(said: object, path: str) -> Mapping[str, str]:
    told = entries(said, path, "{zone: eu}")
    for key, value in told.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise wrong(f"{path}.{str(key)[:80]}", "must be a text")
    return dict(told)


def _timeouts(said: object, path: str) -> Timeouts:
    told = entries(said, path, "{first_event_s: 900}")
    check_names(told, [name for name in Timeouts.__struct_fields__ if name != "strange"], path)
    for name, value in told.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value <= TIMEOUT_MAX_S:
            raise wrong(f"{path}.{name}", f"must be seconds above 0, up to {TIMEOUT_MAX_S:.0f}")
    seconds: dict[str, Any] = {name: float(value) for name, value in told.items()}
    return Timeouts(**seconds)


def _models(said: object, path: str) -> tuple[ModelSpec, ...]:
    if not isinstance(said, list | tuple):
        raise wrong(path, "must be a list of names, or of objects as {model: NAME}")
    if len(said) > MODELS_MAX:
        raise wrong(path, f"has more than {MODELS_MAX:,} models")
    found = tuple(_model(one, f"{path}[{at}]") for at, one in enumerate(said))
    seen: dict[str, int] = {}
    for at, one in enumerate(found):
        if seen.setdefault(one.model, at) != at:
            raise wrong(f"{path}[{at}]", f"names {shown(one.model)} again")
    return found


def _model(said: Any, path: str) -> ModelSpec:
    told = entries({"model": said} if isinstance(said, str) else said, path, "{model: NAME}")
    check_names(told, [name for name in ModelSpec.__struct_fields__ if name != "strange"], path)
    return ModelSpec(
        word(told.get("model"), f"{path}.model"),
        words(told.get("dialects", ()), f"{path}.dialects", most=NAMES_MAX),
        _tokens(told, "output_max", path),
        words(told.get("quirks", ()), f"{path}.quirks", most=NAMES_MAX),
        _tokens(told, "cache_min_tokens", path),
    )


def _tokens(told: Mapping[str, Any], name: str, path: str) -> int:
    most = told.get(name, 0)
    if not isinstance(most, int) or isinstance(most, bool) or not 0 <= most <= OUTPUT_MAX:
        raise wrong(f"{path}.{name}", f"must be a number of tokens, up to {OUTPUT_MAX:,}")
    return most
