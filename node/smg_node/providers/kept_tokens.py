"""Kept tokens: the task that makes one provider's access tokens, and the fetch that its maker uses."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias

from aiohttp import ClientError, ClientSession, ClientTimeout

from smg_node.core.ports import Clock
from smg_node.providers.access_tokens.made_token import AwsKeys, MadeToken
from smg_node.providers.access_tokens.makers import token_maker
from smg_node.providers.access_tokens.token_keeper import TokenKeeper
from smg_node.providers.provider_call import Credential, Signer
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec
from smg_node.providers.secret import SecretSources
from smg_node.providers.sigv4 import RequestToSign, SigV4Signer

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
"""Starts a task of that name."""
AGAIN_S: Final = 60.0
"""After a mistake of ours."""
FETCH_S: Final = 10.0
ANSWER_MAX_BYTES: Final = 1_048_576

_log = logging.getLogger("smg_node.providers")


class TokenTask:
    """Tokens of one provider; see `token_port.KeptTokens`."""

    def __init__(self, keeper: TokenKeeper, spec: ProviderSpec, spawn: Spawn) -> None:
        self.keeper = keeper
        self._spec = spec
        self._signer: tuple[AwsKeys, Signer] | None = None
        self._task = spawn(_kept(keeper, spec.name), f"tokens of {spec.name}")

    def credential(self, token: MadeToken) -> Credential:
        """Return what lets a call in by that token."""
        made = token.credential
        if not isinstance(made, AwsKeys):
            return made
        if self._signer is None or self._signer[0] is not made:
            self._signer = made, signer_of(self._spec, made)
        return self._signer[1]

    def stop(self) -> None:
        """Make no more."""
        self._task.cancel()


async def _kept(keeper: TokenKeeper, name: str) -> None:
    """Make tokens until cancelled, whatever becomes of one."""
    while True:
        try:
            await keeper.run()
        except Exception:
            # A door: what one provider's definition provokes must not end the node, which all nodes would share.
            _log.exception("tokens of the provider %s cannot be made", name)
            await asyncio.sleep(AGAIN_S)


def keep_tokens(
    spec: ProviderSpec,
    secrets: ProviderSecrets,
    *,
    sources: SecretSources,
    clock: Clock,
    spawn: Spawn,
) -> TokenTask | None:
    """Begin to keep a provider's tokens; None where its credentials are keys, or none."""
    maker = token_maker(spec, secrets, fetch, sources)
    if maker is None:
        return None
    keeper = TokenKeeper(spec.name, maker, lambda: clock.now_ms() / 1000)
    return TokenTask(keeper, spec, spawn)


def signer_of(spec: ProviderSpec, keys: AwsKeys) -> Signer:
    """Return what signs the calls of a provider with these keys."""
    hosting = spec.hosting
    assert hosting is not None, "it has a kind"
    return _Signing(SigV4Signer(hosting.service, spec.region), keys)


class _Signing:
    """Signs with one account's keys; see `Signer`."""

    def __init__(self, signer: SigV4Signer, keys: AwsKeys) -> None:
        self._signer = signer
        self._keys = keys

    def sign(
        self,
        method: str,
        url_path: str,
        query: str,
        headers: Mapping[str, str],
        body: bytes,
        now: float,
    ) -> Mapping[str, str]:
        request = RequestToSign(method, headers["host"], url_path, query, headers, body)
        return self._signer.headers(request, self._keys, now_s=now)


async def fetch(
    method: str, url: str, headers: Mapping[str, str], body: bytes
) -> tuple[int, bytes]:
    """Return status and body of one request; see `access_tokens.fetch.Fetch`."""
    async with ClientSession(timeout=ClientTimeout(total=FETCH_S), trust_env=False) as session:
        try:
            async with session.request(
                method, url, headers=dict(headers), data=body or None, allow_redirects=False
            ) as answer:
                # `content.read(n)` would give what is there by now, which may be half a token.
                told = bytearray()
                async for piece in answer.content.iter_any():
                    told += piece
                    if len(told) > ANSWER_MAX_BYTES:
                        raise OSError("an answer of more than a mebibyte")
                return answer.status, bytes(told)
        except ClientError as error:
            raise OSError(f"{type(error).__name__}") from error
