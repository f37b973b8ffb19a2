"""Entra tokens: of an application of Microsoft's directory, by its secret or by a token that somebody else renews."""

from typing import Final

from smg_node.providers.access_tokens.fetch import FORM, Fetch, fetched_json, form, place_of
from smg_node.providers.access_tokens.made_token import MadeToken, bearer
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec
from smg_node.providers.secret import Secret, SecretSources

AUTHORITY: Final = "https://login.microsoftonline.com"
SCOPE: Final = "https://cognitiveservices.azure.com/.default"
FOUNDRY_SCOPE: Final = "https://ai.azure.com/.default"
"""What Anthropic's client for Foundry asks for."""
_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class EntraMaker:
    """Makes the tokens of one provider."""

    def __init__(
        self, spec: ProviderSpec, secrets: ProviderSecrets, fetch: Fetch, sources: SecretSources
    ) -> None:
        self._said = spec.credentials
        self._scope = self._said.scope or (FOUNDRY_SCOPE if spec.kind == "foundry" else SCOPE)
        self._named = secrets.named
        self._fetch = fetch
        self._sources = sources

    async def make(self, now: float) -> MadeToken:
        """Return a token; UPSTREAM_FAILED with what is missing otherwise."""
        said = self._said
        authority = (said.authority or AUTHORITY).rstrip("/")
        url = f"{authority}/{said.tenant}/oauth2/v2.0/token"
        fields = {
            "grant_type": "client_credentials",
            "client_id": said.client_id,
            "scope": self._scope,
        }
        if said.token_file:
            # Read anew each time: it is renewed where it lies.
            fields["client_assertion_type"] = _ASSERTION
            fields["client_assertion"] = Secret(f"file:{said.token_file}").read(self._sources)
        else:
            fields["client_secret"] = self._named["client_secret"].read(self._sources)
        answer = await fetched_json(self._fetch, "POST", url, FORM, form(**fields))
        return bearer(answer, place_of(url), now)
