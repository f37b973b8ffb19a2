"""Workers knobs: the engines behind this node, and how their health is probed."""

import re
from ipaddress import ip_network

from pydantic import SecretStr, field_validator, model_validator

from smg_node.config.schema.declaration import Section, number, text, words
from smg_node.config.worker_url import parse_worker_url, prefill_urls, with_role
from smg_node.core.errors import SmgError

_KEY = re.compile(r"[!-~]+", re.ASCII)


class Workers(Section):
    """The engines behind this node, and how patiently they are looked at."""

    urls: tuple[str, ...] = words(
        (),
        "Engines, as grpc://host:port, http://host:port (with the OpenAI API) or host:port (found out), where"
        " needed followed by ?role= regular, prefill, decode or encode, &model=NAME, &contract= vllm, sglang,"
        " trtllm or mlx, &priority=50, &cost=1, &label.KEY=VALUE (label.weight: its share of hashed keys).",
        most=4096,
        short="--worker",
        metavar="URL",
        aliases=("--worker-urls",),
    )
    prefill_urls: tuple[str, ...] = words(
        (),
        "Engines that only work prompts off; a bootstrap port may follow a URL.",
        most=4096,
        short="--prefill",
        metavar="URL",
    )
    decode_urls: tuple[str, ...] = words(
        (),
        "Engines that only draw the answers to such prompts.",
        most=4096,
        short="--decode",
        metavar="URL",
    )
    encode_urls: tuple[str, ...] = words(
        (),
        "Engines that only encode pictures for those that work prompts off; a bootstrap port may follow a URL.",
        most=4096,
        metavar="URL",
        aliases=("--encode",),
    )
    api_key: SecretStr | None = text(
        None,
        "Key that the engines listed here are sent, as `Authorization: Bearer`.",
        most=4096,
        metavar="KEY",
    )
    probe_interval_s: float = number(
        2,
        "Seconds between two looks at a worker by each node in charge of it; two are, of many nodes.",
        low=0.05,
        high=3600,
        why="more than 20 probes a second disturb an engine; after an hour nobody calls it health",
        aliases=("--health-check-interval-secs",),
    )
    probe_timeout_s: float = number(
        2,
        "Seconds a worker has to answer a probe.",
        low=0.05,
        high=600,
        why="below 50 ms a far engine is down by definition; above 10 minutes a dead one is never found",
        aliases=("--health-check-timeout-secs",),
    )
    load_interval_s: float = number(
        2,
        "Seconds between two questions how busy an engine is, while it does not say so by itself; an idle"
        " one is asked less often.",
        low=0.2,
        high=10,
        why="more than 5 questions a second disturb an engine; what it said 15 seconds ago is not used",
        aliases=("--load-monitor-interval",),
    )
    retry_s: float = number(
        1,
        "Seconds until a worker that could not be reached or registered is tried again.",
        low=0.02,
        high=3600,
        why="more than 50 attempts a second are load; after an hour an engine would stay unused",
    )
    down_after: int = number(
        3,
        "Failed probes in a row after which a worker gets no new requests.",
        low=1,
        high=1000,
        why="at least one observation; beyond 1,000 a dead worker is never noticed",
        aliases=("--health-failure-threshold",),
    )
    up_after: int = number(
        2,
        "Good probes in a row after which a worker gets requests again.",
        low=1,
        high=1000,
        why="at least one observation; beyond 1,000 a healthy worker is never used",
        aliases=("--health-success-threshold",),
    )
    allowed_networks: tuple[str, ...] = words(
        (),
        "Networks (CIDR) that workers may be registered from. Empty: any.",
        most=256,
        metavar="CIDR",
    )

    @property
    def sent_key(self) -> str:
        """The key that these engines are sent, "" for none."""
        return "" if self.api_key is None else self.api_key.get_secret_value()

    @property
    def listed(self) -> tuple[str, ...]:
        """All of them, each with its role in its URL."""
        return (
            *self.urls,
            *_as_role("prefill", self.prefill_urls),
            *_as_role("decode", self.decode_urls),
            *_as_role("encode", self.encode_urls),
        )

    @field_validator("api_key")
    @classmethod
    def _travels(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not _KEY.fullmatch(key.get_secret_value()):
            raise ValueError("a key is of printable ASCII characters without blanks")
        return key

    @field_validator("urls")
    @classmethod
    def _worker_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        _as_role("regular", urls)
        return urls

    @field_validator("prefill_urls")
    @classmethod
    def _prefill_urls(cls, said: tuple[str, ...]) -> tuple[str, ...]:
        urls = prefill_urls(said)
        _as_role("prefill", urls)
        return urls

    @field_validator("encode_urls")
    @classmethod
    def _encode_urls(cls, said: tuple[str, ...]) -> tuple[str, ...]:
        urls = prefill_urls(said)
        _as_role("encode", urls)
        return urls

    @field_validator("decode_urls")
    @classmethod
    def _decode_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        _as_role("decode", urls)
        return urls

    @model_validator(mode="after")
    def _one_role_each(self) -> "Workers":
        lists = {"urls": self.urls, "prefill_urls": self.prefill_urls}
        lists |= {"decode_urls": self.decode_urls, "encode_urls": self.encode_urls}
        given: dict[str, str] = {}
        for knob, urls in lists.items():
            for url in map(parse_worker_url, urls):
                first = given.setdefault(url.identity, knob)
                if first != knob:
                    raise ValueError(f"{url.endpoint} is listed in {first} and in {knob}")
        return self

    @field_validator("allowed_networks")
    @classmethod
    def _networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        try:
            return tuple(str(ip_network(network, strict=False)) for network in networks)
        except ValueError as error:
            raise ValueError(f"{error}; write a network such as 10.0.0.0/8") from None


def _as_role(role: str, urls: tuple[str, ...]) -> tuple[str, ...]:
    """Return these URLs with that role, any for regular; ValueError for the first that cannot have
    it.
    """
    try:
        read = [parse_worker_url(url) for url in urls]
        if role == "regular":
            return urls
        return tuple(str(with_role(url, role)) for url in read)
    except SmgError as error:
        raise ValueError(error.message) from None
