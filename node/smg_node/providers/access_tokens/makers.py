"""Makers: which one makes the tokens of a provider, by the kind of its credentials."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from smg_node.providers.access_tokens.aws_keys import AwsMaker
from smg_node.providers.access_tokens.entra_tokens import EntraMaker
from smg_node.providers.access_tokens.fetch import Fetch
from smg_node.providers.access_tokens.google_tokens import GoogleMaker
from smg_node.providers.access_tokens.token_keeper import TokenMaker
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec
from smg_node.providers.secret import SecretSources

_Make: TypeAlias = Callable[[ProviderSpec, ProviderSecrets, Fetch, SecretSources], TokenMaker]
_MAKERS: Final[Mapping[str, _Make]] = {"aws": AwsMaker, "gcp": GoogleMaker, "entra": EntraMaker}


def token_maker(
    spec: ProviderSpec, secrets: ProviderSecrets, fetch: Fetch, sources: SecretSources
) -> TokenMaker | None:
    """Return the maker of a provider's tokens; None where its credentials are keys, or none."""
    make = _MAKERS.get(spec.credentials.kind)
    return make(spec, secrets, fetch, sources) if make is not None else None
