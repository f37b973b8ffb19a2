"""Target: one model of one provider as an engine of the fleet: never probed, called as its vendor wants it.

It is an `HttpEngine` with a vendor side. What it knows of the account it shares with the provider's other targets.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from smg_node.core.errors import SmgError
from smg_node.core.ports import Clock
from smg_node.core.prices.price import Price
from smg_node.core.prices.price_list import PriceBook
from smg_node.dialects.provider_dialect import ProviderDialect, WriterOptions
from smg_node.dialects.worker_errors import WorkerError
from smg_node.engines.engine import ModelCard
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.status_mapping import not_implemented
from smg_node.engines.http.transport import FAILED_TO_CONNECT, HttpAnswer, HttpCall
from smg_node.engines.http.vendor_cache import CachePlace, CacheRules
from smg_node.engines.http.vendor_side import Dressed, Refusal, Undressing, Unframer
from smg_node.engines.load import Load
from smg_node.engines.transport.grpc_status import PROVIDER_UNREACHABLE_CODE, UNREACHABLE_CODE
from smg_node.engines.transport.transport import TransportError
from smg_node.providers.account import ProviderAccount
from smg_node.providers.account_key import Use
from smg_node.providers.affinity.cache_rules import cache_rules
from smg_node.providers.issuers import issuer_of
from smg_node.providers.provider_call import ApiKey, Credential, PreparedCall, ProviderCall
from smg_node.providers.provider_connections import Connections
from smg_node.providers.provider_dialects import provider_dialect
from smg_node.providers.provider_spec import ProviderSpec
from smg_node.providers.vendor_errors import Retry, VendorFailure, event_failure, vendor_failure
from smg_node.providers.wire.answer_undressing import AnswerUndressing
from smg_node.providers.wire.provider_headers import to_client

CLIENT_KEY_HEADER: Final = "x-smg-provider-key"
"""A client's own key for the vendor, where the provider's definition takes it."""
INVOKE: Final = "bedrock_invoke"
"""Kind whose streams are AWS's frames around another API's events."""
OUTPUT_MAX: Final = 4_096
_DRAWN: Final = frozenset({"temperature", "top_p", "topP", "top_k", "topK"})
_OPTIONAL: Final[Mapping[str, frozenset[str]]] = {
    "unsupported_value": _DRAWN,
    "unsupported_parameter": _DRAWN
    | {
        *("frequency_penalty", "presence_penalty", "frequencyPenalty", "presencePenalty", "seed"),
        *("logprobs", "top_logprobs", "logit_bias", "max_tokens", "max_completion_tokens"),
        *("reasoning_effort", "effort", "summary", "parallel_tool_calls", "stream_options"),
    },
}
"""Fields that are left out of later bodies once this model refused them, by the vendor's code."""


class ProviderTarget(HttpEngine):
    """One target; see `engine.Engine`. `public` is the model's name for clients."""

    def __init__(
        self,
        account: ProviderAccount,
        model: str,
        *,
        public: str,
        options: EngineOptions,
        connections: Connections,
        clock: Clock,
        prices: PriceBook,
    ) -> None:
        super().__init__(_Wire(account, connections), options, model=public)
        self.served_name = model
        self.vendor = VendorTarget(account, model, public, clock, prices)
        self._account = account
        self._public = public

    async def serving(self, timeout_s: float) -> bool:
        """Return that it may be called: a vendor is not probed."""
        return True

    async def card(self, timeout_s: float) -> ModelCard:
        """Return what its definition says."""
        account = self._account
        return ModelCard(
            contract=self.contract,
            model=self._public,
            model_path="",
            context=None,
            prompt_max=None,
            vocabulary=None,
            eos_ids=(),
            server={"provider": account.spec.name, "kind": account.spec.kind},
        )

    def _broken(self, error: TransportError) -> SmgError:
        broken = super()._broken(error)
        if broken.code != UNREACHABLE_CODE:
            return broken
        name = self._account.spec.name
        lost = FAILED_TO_CONNECT not in error.message
        said = f"the connection to the provider {name!r} was lost"
        return SmgError(
            broken.kind,
            said if lost else f"the provider {name!r} cannot be reached",
            code=PROVIDER_UNREACHABLE_CODE,
        )

    async def loads(self, timeout_s: float) -> Sequence[Load]:
        """Raise that vendors do not say."""
        raise not_implemented("a vendor does not say how busy it is")


class _Wire:
    """Transport of one target: the connections of wherever its account is now; see `HttpTransport`."""

    def __init__(self, account: ProviderAccount, connections: Connections) -> None:
        self.target = account.spec.name
        self._account = account
        self._connections = connections

    async def send(self, call: HttpCall) -> HttpAnswer:
        """Send a request; see `HttpTransport`."""
        return await self._connections.of(self._account.spec).send(call)

    async def close(self) -> None:
        """Do nothing: the connections are all targets'."""


class VendorTarget:
    """Vendor side of one target; see `VendorSide`."""

    def __init__(
        self,
        account: ProviderAccount,
        model: str,
        public: str,
        clock: Clock,
        prices: PriceBook | None = None,
    ) -> None:
        self.account = account
        account.models.add(model)
        self._model = model
        self._public = public
        self._clock = clock
        self._prices = PriceBook() if prices is None else prices
        self._prepared_for: ProviderSpec | None = None
        self._calls: dict[tuple[str, bool], PreparedCall] = {}
        self._ruled_for: ProviderSpec | None = None
        self._rules: dict[str, CacheRules] = {}
        self._lacks: frozenset[str] = frozenset()
        """Fields that the vendor said this model does not take."""

    @property
    def model(self) -> str:
        """The vendor's name of the model."""
        return self._model

    @property
    def price(self) -> Price | None:
        """See `VendorSide`."""
        return self._prices.now.of(self._public, self.provider, self._model)

    @property
    def provider(self) -> str:
        """Name of the provider."""
        return self.account.spec.name

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of the APIs it speaks, the preferred one first."""
        spec = self.account.spec
        own = spec.model(self.model).dialects
        hosting = spec.hosting
        return own or (() if hosting is None else tuple(hosting.dialects))

    def dialect(self, name: str) -> ProviderDialect:
        """Return one of these."""
        return provider_dialect(name, self._model, self._issuer())

    def options(self, name: str, *, stateless: bool = False) -> WriterOptions:
        """See `VendorSide`."""
        spec = self.account.spec
        return WriterOptions(
            model=self.model,
            issuer="" if stateless else self._issuer(),
            output_max=spec.model(self.model).output_max or OUTPUT_MAX,
            quirks=self.quirks(),
            lacks=self._lacks,
        )

    def _issuer(self) -> str:
        spec = self.account.spec
        return issuer_of(spec.kind, self.model, spec.name)

    def quirks(self) -> frozenset[str]:
        """Return what this vendor does otherwise."""
        spec = self.account.spec
        return frozenset((*spec.quirks, *spec.model(self.model).quirks))

    async def passed(
        self,
        name: str,
        raw: bytes,
        *,
        ours: str,
        streamed: bool,
        headers: Mapping[str, str],
        prompt_tokens: int,
        prefer: str = "",
    ) -> Dressed:
        """See `VendorSide`."""
        need = _need(prompt_tokens)
        call, use = await self._call(
            name, raw, need, streamed=streamed, headers=headers, prefer=prefer
        )
        known = "" if ours == self.model else ours
        undress = AnswerUndressing(name, known, withhold_usage=call.usage_added)
        return _dressed(call, use, undress)

    async def written(
        self,
        name: str,
        fields: Mapping[str, object],
        *,
        headers: Mapping[str, str],
        prompt_tokens: int,
        prefer: str = "",
    ) -> Dressed:
        """See `VendorSide`."""
        # A header of the client's is for the vendor where it speaks the vendor's API; its own key always is.
        own = {CLIENT_KEY_HEADER: headers.get(CLIENT_KEY_HEADER, "")}
        need = _need(prompt_tokens)
        call, use = await self._call(name, fields, need, streamed=True, headers=own, prefer=prefer)
        return _dressed(call, use, None)

    async def _call(
        self,
        name: str,
        body: bytes | Mapping[str, object],
        need: Mapping[str, float],
        *,
        streamed: bool,
        headers: Mapping[str, str],
        prefer: str,
    ) -> tuple[ProviderCall, Use]:
        account = self.account
        if not self.own_account(headers):
            credential: Credential = ApiKey(headers[CLIENT_KEY_HEADER])
            use = account.client_use()
        else:
            credential, use = await account.use(need, prefer)
        prepared = self._prepared(name, streamed=streamed)
        call = prepared.call(body, credential, self._clock.now_ms() / 1000, headers)
        return call, use

    def _prepared(self, name: str, *, streamed: bool) -> PreparedCall:
        """Return what calls of one kind have in common, made anew where the definition changed."""
        spec = self.account.spec
        if spec is not self._prepared_for:
            self._prepared_for, self._calls = spec, {}
        found = self._calls.get((name, streamed))
        if found is None:
            found = self._calls[name, streamed] = PreparedCall(
                spec, name, self.model, streamed=streamed
            )
        return found

    def answer_headers(self, headers: Mapping[str, str], dressed: Dressed) -> dict[str, str]:
        """See `VendorSide`."""
        self.account.count()
        self.account.answered(_use(dressed), headers)
        return to_client(headers) if dressed.undress is not None else {}

    def unframer(self, name: str) -> Unframer | None:
        """See `VendorSide`."""
        if self.account.spec.kind != INVOKE:
            return None
        from smg_node.dialects.converse.chunk_frames import ChunkFrames

        return ChunkFrames()

    def refused(
        self, status: int, headers: Mapping[str, str], body: bytes, dressed: Dressed
    ) -> Refusal:
        """See `VendorSide`."""
        use = _use(dressed)
        failure = vendor_failure(
            status,
            headers,
            body,
            kind=self.account.spec.kind,
            now=self._clock.now_ms() / 1000,
            secrets=self.account.secrets,
            client_key=use.client_key,
        )
        self.account.answered(use, headers)
        lacked = len(self._lacks)
        error = self._noted(use, failure)
        return Refusal(error, failure.retry is Retry.WITHOUT_STATE, len(self._lacks) > lacked)

    def broken(self, said: WorkerError, dressed: Dressed) -> SmgError:
        """See `VendorSide`."""
        use = _use(dressed)
        failure = event_failure(said, secrets=self.account.secrets, client_key=use.client_key)
        return self._noted(use, failure)

    def unanswered(self, dressed: Dressed) -> None:
        """See `VendorSide`."""
        self.account.unanswered(_use(dressed))

    @property
    def cache_key_added(self) -> bool:
        """See `VendorSide`."""
        return self.account.spec.cache_key_added

    def cache_rules(self, name: str) -> CacheRules:
        """See `VendorSide`."""
        spec = self.account.spec
        if spec is not self._ruled_for:
            self._ruled_for, self._rules = spec, {}
        found = self._rules.get(name)
        if found is None:
            found = self._rules[name] = cache_rules(spec, self._model, name)
        return found

    def cache_places(self, tokens: float) -> Sequence[CachePlace]:
        """See `VendorSide`."""
        return self.account.cache_places(self._model, _need(tokens))

    def cache_key_of(self, dressed: Dressed) -> str:
        """See `VendorSide`."""
        by_key = self.account.spec.cache_scope == "key"
        return _use(dressed).key.digest if by_key else ""

    def cached(self, *, read: int, written: int, expected: float) -> None:
        """See `VendorSide`."""
        self.account.count_cached(read=read, written=written, expected=expected)

    def off_s(self, prompt_tokens: int = 0) -> float:
        """See `VendorSide`."""
        return self.account.off_s(self.model, _need(prompt_tokens))

    def off_error(self, prompt_tokens: int = 0) -> SmgError:
        """See `VendorSide`."""
        return self.account.off_error(self.model, _need(prompt_tokens))

    def refusal(self, prompt_tokens: int) -> SmgError:
        """See `VendorSide`."""
        return self.account.refusal(self.model, _need(prompt_tokens))

    @property
    def keys(self) -> int:
        """See `VendorSide`."""
        return max(1, len(self.account.rests()))

    def own_account(self, headers: Mapping[str, str]) -> bool:
        """See `VendorSide`."""
        return not (self.account.spec.client_keys and headers.get(CLIENT_KEY_HEADER))

    def missed(self, prompt_tokens: int) -> None:
        """See `VendorSide`."""
        self.account.missed(_need(prompt_tokens))

    def _noted(self, use: Use, failure: VendorFailure) -> SmgError:
        self.account.failed(use, failure, self.model)
        field = failure.refused_field
        # A mistake of one client must change nothing for others: only what no request needs, where the model has no
        # such field at all, or has one value of it.
        if field.rpartition(".")[2] in _OPTIONAL.get(failure.code, ()):
            self._lacks |= {field}
        return failure.error


def _need(prompt_tokens: float) -> Mapping[str, float]:
    """Return what one call spends of an account, by the names that vendors give it."""
    return {"requests": 1.0, "tokens": prompt_tokens, "input-tokens": prompt_tokens}


def _dressed(call: ProviderCall, use: Use, undress: Undressing | None) -> Dressed:
    return Dressed(call.url.target, call.headers, call.body, undress, use)


def _use(dressed: Dressed) -> Use:
    use = dressed.account
    assert isinstance(use, Use), "it was dressed here"
    return use
