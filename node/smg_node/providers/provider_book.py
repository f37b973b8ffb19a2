"""Provider book: the accounts of all defined providers, by name, and the targets that are opened on them."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from smg_node.core.ports import Clock
from smg_node.core.prices.price_list import PriceBook
from smg_node.engines.engine_options import EngineOptions
from smg_node.providers.access_tokens.token_port import KeptTokens
from smg_node.providers.account import ProviderAccount
from smg_node.providers.provider_connections import Connections
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec
from smg_node.providers.secret import SECRET_MAX_CHARACTERS
from smg_node.providers.target import ProviderTarget

if TYPE_CHECKING:
    import ssl

    from smg_node.providers.kept_tokens import Spawn


class NodeSources:
    """Files and environment of this node; see `SecretSources`."""

    def file(self, path: str) -> str:
        """Return the text of a file, as far as a secret can be."""
        with Path(path).expanduser().open(encoding="utf-8") as file:
            return file.read(SECRET_MAX_CHARACTERS + 1)

    def env(self, name: str) -> str | None:
        """Return a variable of the environment."""
        return os.environ.get(name)


class ProviderBook:
    """Accounts of one process. `options` say how long engines may take, where a provider says nothing; `spawn` starts
    tasks that make tokens; `prices` is where targets find what they cost.
    """

    def __init__(
        self, options: EngineOptions, clock: Clock, spawn: "Spawn", prices: PriceBook | None = None
    ) -> None:
        self._options = options
        self._clock = clock
        self._spawn = spawn
        self._prices = PriceBook() if prices is None else prices
        self._sources = NodeSources()
        self._accounts: dict[str, ProviderAccount] = {}
        self.noted: Callable[[], None] = lambda: None
        """Is called when an account may know something that others want to know."""
        self._connections = Connections(options.connect_s, _trust)

    def update(self, defined: Mapping[str, tuple[ProviderSpec, ProviderSecrets]]) -> None:
        """Take these as all definitions; accounts that stay keep what they know."""
        for name in self._accounts.keys() - defined.keys():
            self._accounts.pop(name).close()
        for name, (spec, secrets) in defined.items():
            found = self._accounts.get(name)
            if found is None:
                made = self._accounts[name] = ProviderAccount(
                    spec, secrets, self._sources, self._clock, self._tokens
                )
                made.noted = lambda: self.noted()
            else:
                found.update(spec, secrets)

    def has(self, name: str) -> bool:
        """Whether a provider of that name is defined."""
        return name in self._accounts

    def accounts(self) -> Mapping[str, ProviderAccount]:
        """Return the accounts by their providers' names."""
        return self._accounts

    def open(self, name: str, model: str, *, public: str) -> ProviderTarget:
        """Return a new target of a provider that is defined."""
        account = self._accounts[name]
        timeouts, options = account.spec.timeouts, self._options
        options = replace(
            options,
            first_event_s=timeouts.first_event_s or options.first_event_s,
            stall_s=timeouts.stall_s or options.stall_s,
        )
        return ProviderTarget(
            account,
            model,
            public=public,
            options=options,
            connections=self._connections,
            clock=self._clock,
            prices=self._prices,
        )

    def _tokens(self, spec: ProviderSpec, secrets: ProviderSecrets) -> KeptTokens | None:
        if spec.credentials.kind in ("keys", "none"):
            return None
        # Imported with the first provider that has tokens.
        from smg_node.providers.kept_tokens import keep_tokens

        return keep_tokens(
            spec, secrets, sources=self._sources, clock=self._clock, spawn=self._spawn
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()


@cache
def _trust() -> "ssl.SSLContext":
    # One for all: the certificates that a machine trusts are a megabyte.
    from smg_node.engines.http.aiohttp_client import trusting

    return trusting()
