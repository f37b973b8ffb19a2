"""Credentials of clients: which keys are good, and who a request comes from."""

from collections.abc import Iterable, Mapping
from typing import Final

from smg_chaos.vendor.access.access_tokens import AccessTokens
from smg_chaos.vendor.access.sigv4 import SignedRequest, claim_of, objection
from smg_chaos.vendor.errors.google_envelope import INVALID_KEY
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError
from smg_chaos.vendor.hostings.hosting import Hosting

_WORDS: Final[Mapping[str, str]] = {
    "openai": "Incorrect API key provided: {key}. You can find your API key in your account.",
    "azure": (
        "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a "
        "valid key for an active subscription and use a correct regional API endpoint."
    ),
    "anthropic": "invalid x-api-key",
    "google": "Request had invalid authentication credentials.",
    "aws": "The security token included in the request is invalid.",
    "groq": "Invalid API Key",
}


class Credentials:
    """The good keys, which may be changed while it runs: `KEY`, or `ID:SECRET` and `ID:SECRET:TOKEN` for signatures."""

    def __init__(self, keys: Iterable[str], tokens: AccessTokens) -> None:
        self._keys: dict[str, tuple[str, str | None]] = {}
        self._secrets: dict[str, tuple[str, str]] = {}
        self._tokens = tokens
        for key in keys:
            self.add(key)

    @property
    def names(self) -> list[str]:
        """Return the names of the good keys: of those for signatures their ids."""
        return [*self._keys, *self._secrets]

    def add(self, key: str) -> None:
        """Take a key as good from now on."""
        name, _, secret = key.partition(":")
        if secret:
            secret, _, token = secret.partition(":")
            self._secrets[name] = (secret, token)
        else:
            self._keys[name] = ("", None)

    def remove(self, key: str) -> bool:
        """Take a key as wrong from now on; return whether it was good."""
        name = key.partition(":")[0]
        known = name in self._keys or name in self._secrets
        self._keys.pop(name, None)
        self._secrets.pop(name, None)
        return known

    def client(self, hosting: Hosting, request: SignedRequest, query_key: str, now_s: float) -> str:
        """Return the name of the key that a request comes with; VendorError if it has none that is good."""
        headers = request.headers
        authorization = headers.get("authorization", "")
        if "sigv4" in hosting.schemes and authorization.startswith("AWS4-"):
            return self._signer(hosting, request, authorization, now_s)
        shown = self._shown(hosting, headers, query_key)
        for key in shown:
            if key in self._keys:
                return key
            account = self._tokens.account_of(key, now_s)
            if account is not None:
                return account
        raise _refusal(hosting, shown[0] if shown else "")

    def _shown(self, hosting: Hosting, headers: Mapping[str, str], query_key: str) -> list[str]:
        shown = []
        for scheme in hosting.schemes:
            if scheme == "bearer":
                kind, _, key = headers.get("authorization", "").partition(" ")
                if kind.lower() == "bearer" and key:
                    shown.append(key.strip())
            elif key := headers.get(scheme, ""):
                shown.append(key)
        if query_key and "x-goog-api-key" in hosting.schemes:
            shown.append(query_key)
        return shown

    def _signer(
        self, hosting: Hosting, request: SignedRequest, authorization: str, now_s: float
    ) -> str:
        claim = claim_of(authorization)
        if claim is None:
            raise VendorError(
                Reason.SIGNATURE, "Authorization header requires 'Credential' parameter.", gate=True
            )
        known = self._secrets.get(claim.key_id)
        token = request.headers.get("x-amz-security-token", "")
        if known is None or known[1] != token:
            raise _refusal(hosting, claim.key_id)
        if why := objection(request, claim, known[0], hosting.service, now_s):
            raise VendorError(Reason.SIGNATURE, why, gate=True)
        return claim.key_id


def _refusal(hosting: Hosting, key: str) -> VendorError:
    family = hosting.gate or hosting.family
    if not key and family == "aws":
        return VendorError(Reason.FORBIDDEN, "Missing Authentication Token", gate=True)
    if hosting.schemes[0] == "x-goog-api-key":
        if not key:
            said = "Method doesn't allow unregistered callers. Please use API Key or other form of API consumer identity."
            return VendorError(Reason.FORBIDDEN, said, gate=True)
        return VendorError(Reason.UNAUTHORIZED, INVALID_KEY, gate=True)
    said = _WORDS.get(family, _WORDS["openai"]).format(key=key[:4] + "***" if key else "''")
    return VendorError(Reason.UNAUTHORIZED, said, gate=True)
