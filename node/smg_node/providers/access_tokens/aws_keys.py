"""AWS keys: from an operator, the environment, a web identity, a container or the machine itself.

Without a `source` the first that is there counts, in that order: as AWS's own clients do.
"""

import html
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from smg_node.providers.access_tokens.fetch import Fetch, fetched, fetched_json, form, place_of
from smg_node.providers.access_tokens.made_token import AwsKeys, MadeToken, time_of, token_error
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec
from smg_node.providers.secret import Secret, SecretSources
from smg_node.providers.wire.provider_url import aws_domain

SESSION_NAME: Final = "smg-node"
METADATA: Final = "http://169.254.169.254"
METADATA_LIFE_S: Final = 21_600
CONTAINER: Final = "http://169.254.170.2"
_CONTAINER_HOSTS: Final = (
    "169.254.170.2",
    "169.254.170.23",
    "fd00:ec2::23",
    "localhost",
    "127.0.0.1",
    "::1",
)
"""Hosts that may be asked for keys without TLS."""
_ROLES: Final = "/latest/meta-data/iam/security-credentials/"
_ROLE: Final = re.compile(r"[\w+=,.@-]{1,128}", re.ASCII)


class AwsMaker:
    """Makes the keys of one provider."""

    def __init__(
        self, spec: ProviderSpec, secrets: ProviderSecrets, fetch: Fetch, sources: SecretSources
    ) -> None:
        self._spec = spec
        self._named = secrets.named
        self._fetch = fetch
        self._sources = sources

    async def make(self, now: float) -> MadeToken:
        """Return keys; UPSTREAM_FAILED with what is missing otherwise."""
        makers: Mapping[str, Callable[[float], Awaitable[MadeToken]]] = {
            "keys": self._given,
            "environment": self._environment,
            "web_identity": self._web_identity,
            "container": self._container,
            "instance": self._instance,
        }
        return await makers[self._source()](now)

    def _source(self) -> str:
        env = self._sources.env
        said = self._spec.credentials
        if said.source:
            return said.source
        if "access_key_id" in self._named:
            return "keys"
        if env("AWS_ACCESS_KEY_ID") and env("AWS_SECRET_ACCESS_KEY"):
            return "environment"
        if said.token_file or env("AWS_WEB_IDENTITY_TOKEN_FILE"):
            return "web_identity"
        container = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
        return "container" if any(map(env, container)) else "instance"

    async def _given(self, now: float) -> MadeToken:
        token = self._named.get("session_token")
        keys = AwsKeys(
            self._named["access_key_id"].read(self._sources),
            self._named["secret_access_key"].read(self._sources),
            token.read(self._sources) if token else "",
        )
        return MadeToken(keys, now, None)

    async def _environment(self, now: float) -> MadeToken:
        keys = AwsKeys(
            self._needed("AWS_ACCESS_KEY_ID"),
            self._needed("AWS_SECRET_ACCESS_KEY"),
            self._sources.env("AWS_SESSION_TOKEN") or "",
        )
        return MadeToken(keys, now, None)

    async def _web_identity(self, now: float) -> MadeToken:
        said = self._spec.credentials
        path = said.token_file or self._needed("AWS_WEB_IDENTITY_TOKEN_FILE")
        body = form(
            Action="AssumeRoleWithWebIdentity",
            Version="2011-06-15",
            RoleArn=said.role_arn or self._needed("AWS_ROLE_ARN"),
            RoleSessionName=said.session_name
            or self._sources.env("AWS_ROLE_SESSION_NAME")
            or SESSION_NAME,
            WebIdentityToken=Secret(f"file:{path}").read(self._sources),
        )
        region = self._spec.region
        url = f"https://sts.{region}.{aws_domain(region)}/"
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "text/xml"}
        answer = await fetched(self._fetch, "POST", url, headers, body)
        text = answer.decode("utf-8", "replace")
        # Elements that hold no others: nothing that a parser of XML would be needed for.
        found = dict(re.findall(r"<(\w{1,40})>([^<]{1,8192})</\1>", text))
        said_keys = {name: html.unescape(value).strip() for name, value in found.items()}
        return _session(said_keys, "SessionToken", place_of(url), now)

    async def _container(self, now: float) -> MadeToken:
        env = self._sources.env
        relative = env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        url = f"{CONTAINER}{relative}" if relative else self._container_url()
        path = env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        token = (
            Secret(f"file:{path}").read(self._sources)
            if path
            else env("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        )
        headers = {"accept": "application/json", **({"authorization": token} if token else {})}
        said = await fetched_json(self._fetch, "GET", url, headers)
        return _session(said, "Token", place_of(url), now)

    def _container_url(self) -> str:
        url = self._needed("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        parts = urlsplit(url)
        near = parts.scheme == "http" and parts.hostname in _CONTAINER_HOSTS
        if not near and parts.scheme != "https":
            raise token_error(f"{place_of(url)} is asked for keys only over https")
        return url

    async def _instance(self, now: float) -> MadeToken:
        base = (self._sources.env("AWS_EC2_METADATA_SERVICE_ENDPOINT") or METADATA).rstrip("/")
        life = {"x-aws-ec2-metadata-token-ttl-seconds": str(METADATA_LIFE_S)}
        token = await fetched(self._fetch, "PUT", f"{base}/latest/api/token", life)
        headers = {"x-aws-ec2-metadata-token": token.decode("ascii", "replace").strip()}
        listed = await fetched(self._fetch, "GET", f"{base}{_ROLES}", headers)
        role = next(iter(listed.decode("utf-8", "replace").split()), "")
        if not _ROLE.fullmatch(role):
            raise token_error(f"{place_of(base)} knows no role of this machine")
        url = f"{base}{_ROLES}{role}"
        said = await fetched_json(self._fetch, "GET", url, headers)
        return _session(said, "Token", place_of(url), now)

    def _needed(self, name: str) -> str:
        value = self._sources.env(name)
        if not value:
            raise token_error(f"{name} is not set")
        return value


def _session(said: Mapping[str, Any], token: str, where: str, now: float) -> MadeToken:
    """Return the keys of a session; UPSTREAM_FAILED if the answer holds none."""
    names = ("AccessKeyId", "SecretAccessKey", token)
    values = [said.get(name) for name in names]
    ends = time_of(said.get("Expiration"))
    if not all(isinstance(value, str) and value for value in values) or ends is None:
        code = said.get("Code") or said.get("code")
        told = f" ({code[:80]})" if isinstance(code, str) and code != "Success" else ""
        raise token_error(f"{where} answered without keys of a session{told}")
    return MadeToken(AwsKeys(*map(str, values)), now, ends)
