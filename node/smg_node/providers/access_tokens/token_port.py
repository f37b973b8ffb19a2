"""Token port: interface of what makes and keeps the access tokens of one provider."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from smg_node.providers.access_tokens.made_token import MadeToken
from smg_node.providers.access_tokens.token_keeper import TokenKeeper
from smg_node.providers.provider_call import Credential
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec


class KeptTokens(Protocol):
    """Tokens of one provider, made while it is defined."""

    keeper: TokenKeeper

    def credential(self, token: MadeToken) -> Credential:
        """Return what lets a call in by that token."""
        ...

    def stop(self) -> None:
        """Make no more."""
        ...


KeepTokens: TypeAlias = Callable[[ProviderSpec, ProviderSecrets], KeptTokens | None]
"""Begins to keep the tokens of a provider; None where its credentials are keys, or none."""
