"""Vendor: one stand-in as a machine: a request goes in, a decided reply comes out, and no I/O happens.

In order: path, credentials, needed headers, fault, body, model, what the API refuses, length, rates, cache, answer.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from smg_chaos.vendor.access.access_tokens import AccessTokens
from smg_chaos.vendor.access.credentials import Credentials
from smg_chaos.vendor.access.sigv4 import SignedRequest
from smg_chaos.vendor.answers.answer import Answer, Cost, Draft
from smg_chaos.vendor.answers.composer import compose
from smg_chaos.vendor.answers.conversation import Conversation
from smg_chaos.vendor.answers.seals import Seals
from smg_chaos.vendor.answers.token_counts import pieces_of
from smg_chaos.vendor.apis.call import USUAL_TIER, Api, Call
from smg_chaos.vendor.errors.envelopes import Family, reply_of
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError, invalid
from smg_chaos.vendor.faults.fault import Fault, Faults
from smg_chaos.vendor.hostings.hosting import HOSTINGS, Route
from smg_chaos.vendor.hostings.models import traits_of
from smg_chaos.vendor.hostings.operations import Operation
from smg_chaos.vendor.hostings.quirks import VENDORS
from smg_chaos.vendor.limits.bill import Bill, parse_price
from smg_chaos.vendor.limits.limit_headers import headers_of
from smg_chaos.vendor.limits.prompt_cache import CacheUse, PromptCache
from smg_chaos.vendor.limits.rate_buckets import RateBuckets
from smg_chaos.vendor.operations_table import API_OF, Apis, counted, small_reply
from smg_chaos.vendor.reply import Charge, Reply, json_reply
from smg_chaos.vendor.reply_headers import account_headers, invocation_headers
from smg_chaos.vendor.request_log import RequestLog
from smg_chaos.vendor.settings import ANY_MODEL, VendorSettings

_HTML: Final = (
    b"<!DOCTYPE html><html><head><title>Just a moment...</title></head>"
    b"<body>Checking your browser before accessing the site.</body></html>\n"
)
_SEED_BYTES: Final = 10
_MARKED: Final = (
    Operation.MESSAGES,
    Operation.CONVERSE,
    Operation.CONVERSE_STREAM,
    Operation.INVOKE,
    Operation.INVOKE_STREAM,
    Operation.RAW_PREDICT,
    Operation.STREAM_RAW_PREDICT,
)
_BLOCKS_PROMPTS: Final = (Operation.GENERATE, Operation.STREAM_GENERATE)
"""Where a refused prompt gets no answer at all, and costs none."""
_FAULT_WORDS: Final = "The stand-in refuses on purpose."


class Times(NamedTuple):
    """The time: of a clock that only goes forward, and of the day."""

    now_s: float
    wall_s: float


class Vendor:
    """One stand-in with all its state."""

    def __init__(self, settings: VendorSettings, now_s: float) -> None:
        self.settings = settings
        self.hosting = HOSTINGS[settings.kind]
        self.seals = Seals(settings.seal_key.encode(), settings.seal_bytes)
        self.tokens = AccessTokens(Seals(settings.seal_key.encode()), settings.token_life_s)
        self.credentials = Credentials(settings.keys, self.tokens)
        self.rates = RateBuckets(settings.requests_per_minute, settings.tokens_per_minute)
        self.cache = PromptCache()
        self.bill = Bill(dict(map(parse_price, settings.prices)))
        self.faults = Faults(settings.faults, settings.seed)
        self.log = RequestLog(settings.kept_requests)
        self._apis = Apis()
        self._models = settings.served
        self._quirks = settings.all_quirks
        self._script = pieces_of(settings.script)

    def answer(self, request: SignedRequest, times: Times) -> Reply:
        """Return the reply to a request; it is logged whatever becomes of it."""
        number = self.log.add(request, times.wall_s)
        request_id = f"req_{number:08d}"
        route = self.hosting.route(request.method, request.raw_path)
        try:
            if route is None:
                said = f"Invalid URL ({request.method} {request.raw_path})"
                raise VendorError(Reason.NO_ROUTE, said, gate=True)
            return self._routed(route, request, number, times, request_id)
        except VendorError as error:
            return self._refusal(error, self._family(route), request_id)

    def settle(self, charge: Charge, sent_tokens: int, times: Times, *, whole: bool) -> None:
        """Book what was sent: a reply that broke off costs its prompt and what had come of the answer."""
        cost = charge.cost
        if not whole:
            answer = min(sent_tokens, cost.answer)
            thought = min(cost.thought, answer)
            cost = msgspec.structs.replace(cost, answer=answer, thought=thought)
        self.bill.book(charge.key, charge.model, cost, whole=whole, tier=charge.tier)
        if charge.buckets.tokens is not None:
            spent = charge.counted + cost.answer
            charge.buckets.tokens.take(spent - charge.expected, times.now_s)

    def _family(self, route: Route | None) -> Family:
        """Return the envelope of errors on this path: mantle has two."""
        if route is not None and route.style == "anthropic":
            return "anthropic"
        return self.settings.family()

    def _refusal(self, error: VendorError, family: Family, request_id: str) -> Reply:
        gate = self.hosting.gate if error.gate and self.hosting.gate is not None else family
        told = reply_of(error, gate, request_id)
        return json_reply(told.body, told.status, told.headers)

    def _routed(
        self, route: Route, request: SignedRequest, number: int, times: Times, request_id: str
    ) -> Reply:
        query = dict(parse_qsl(request.raw_query, keep_blank_values=True))
        key = self.credentials.client(self.hosting, request, query.get("key", ""), times.wall_s)
        self._check_needs(request.headers, query)
        body = _decoded(request) if request.method == "POST" else {}
        model = self._model(route, body)
        fault = self.faults.pick(number, model, key)
        if fault is not None and fault.name == "status":
            return self._fault_status(fault, self._family(route), request_id)
        if fault is not None and fault.name == "html":
            heads = {"content-type": "text/html; charset=utf-8"}
            return Reply(headers=heads, body=_HTML, fault=fault)
        if small := small_reply(self._apis, route, request.method, self.settings, self._models):
            return small
        call = self._call(route, request.headers, query, body, model)
        api = API_OF[call.operation](self._apis)
        reply = self._answered(api, call, key, request, times, request_id)
        reply.fault = fault
        if fault is not None and fault.name == "error":
            error = VendorError(fault.reason(), _FAULT_WORDS)
            reply.failure = api.failure(call, error, request_id)
        return reply

    def _check_needs(self, headers: Mapping[str, str], query: Mapping[str, str]) -> None:
        for name in self.hosting.needs:
            if not headers.get(name):
                raise invalid(f"{name}: header is required", name)
        if "needs_api_version" in self._quirks and not query.get("api-version"):
            raise VendorError(Reason.NO_ROUTE, "Resource not found", gate=True)

    def _model(self, route: Route, body: Mapping[str, Any]) -> str:
        named = route.names.get("model") or route.names.get("deployment")
        model = named or body.get("model") or ""
        if route.operation in (Operation.MODELS, Operation.MODEL, Operation.STORED_RESPONSE):
            return named or ""
        if not isinstance(model, str) or not model:
            if self._family(route) == "anthropic":
                raise invalid("model: Field required", "model")
            raise invalid("you must provide a model parameter", "model")
        if model not in self._models and ANY_MODEL not in self._models:
            raise VendorError(Reason.NO_MODEL, _no_model(self._family(route), model), path="model")
        return model

    def _fault_status(self, fault: Fault, family: Family, request_id: str) -> Reply:
        wait = fault.values.get("retry_after")
        wait_s = None if wait is None else float(wait)
        error = VendorError(fault.reason(), _FAULT_WORDS, retry_after_s=wait_s, gate=True)
        reply = self._refusal(error, family, request_id)
        if "code" in fault.values:
            reply.status = fault.number("code")
        reply.fault = fault
        return reply

    def _call(
        self,
        route: Route,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        body: dict[str, Any],
        model: str,
    ) -> Call:
        quirks = self._quirks
        if self.settings.kind == "gemini" and route.style == "openai":
            quirks = quirks | VENDORS["gemini_door"].quirks
        settings = self.settings
        return Call(
            settings.kind,
            self.hosting,
            route.operation,
            quirks,
            headers,
            query,
            body,
            model,
            traits_of(model),
            self.seals,
            settings.account,
            settings.strict,
        )

    def _answered(
        self, api: Api, call: Call, key: str, request: SignedRequest, times: Times, request_id: str
    ) -> Reply:
        conversation = _read(api, call)
        if (count := counted(call, conversation)) is not None:
            return json_reply(count)
        prompt = conversation.prompt_tokens
        context = self.settings.context or call.traits.context
        if prompt > context:
            said = _too_long(_model_family(call), prompt, context)
            raise VendorError(Reason.TOO_LONG, said, path="messages")
        draft = compose(conversation, self._script)
        if draft.ending == "refusal" and call.operation in _BLOCKS_PROMPTS:
            draft = Draft(ending="refusal")
        if draft.ending == "filter" and "content_filters" in call.quirks:
            said = "The response was filtered due to the prompt triggering the content management policy."
            raise VendorError(Reason.CONTENT_FILTER, said, path="prompt")
        expected = prompt + (conversation.answer_max or 0)
        buckets = self.rates.admit(key, expected, times.now_s)
        cost = self._cost(call, conversation, draft, key, times)
        seed = blake2b(request.body + call.model.encode(), digest_size=_SEED_BYTES).hexdigest()
        answer = Answer(draft, cost, seed, int(times.wall_s), conversation.shows_thoughts)
        counts = cost.prompt - (cost.cached if call.operation in _MARKED else 0)
        choices = call.body.get("n") or 1 if call.operation is Operation.CHAT else 1
        billed = msgspec.structs.replace(cost, answer=cost.answer * choices)
        tier = "" if call.tier == USUAL_TIER else call.tier
        charge = Charge(key, call.model, billed, expected, counts, buckets, tier)
        style = self.settings.limit_style()
        headers = {
            **account_headers(call, request_id),
            **headers_of(style, buckets, times.now_s, times.wall_s),
        }
        if conversation.streamed:
            headers["content-type"] = api.content_type
            frames = api.frames(call, conversation, answer)
            return Reply(headers=headers, frames=frames, charge=charge)
        if call.operation is Operation.INVOKE:
            headers |= invocation_headers(cost)
        reply = json_reply(api.whole(call, conversation, answer), headers=headers)
        reply.charge = charge
        return reply

    def _cost(
        self, call: Call, conversation: Conversation, draft: Draft, key: str, times: Times
    ) -> Cost:
        use = self._cached(call, conversation, key, times)
        return Cost(
            conversation.prompt_tokens,
            use.read,
            use.written,
            use.written_long,
            draft.tokens,
            len(draft.thought),
        )

    def _cached(self, call: Call, conversation: Conversation, key: str, times: Times) -> CacheUse:
        settings, traits = self.settings, call.traits
        if not settings.cache:
            return CacheUse()
        least = settings.cache_min_tokens or traits.cache_min_tokens
        owner = key if settings.cache_scope == "key" else ""
        scope = f"{settings.account}|{owner}|{call.model}"
        if call.operation in _MARKED:
            return self.cache.marked(scope, conversation.segments, least, times.now_s)
        scope += f"|{call.body.get('prompt_cache_key') or ''}"
        ttl_s = settings.cache_ttl_s
        use = self.cache.automatic(scope, conversation.segments, least, ttl_s, times.now_s)
        tells = traits.issuer == "openai" and traits.fixed_sampling
        return use if tells else CacheUse(use.read)


def _decoded(request: SignedRequest) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(request.body)
    except (msgspec.DecodeError, RecursionError) as error:
        said = f"We could not parse the JSON body of your request: {error}"
        raise invalid(said) from error
    if not isinstance(body, dict):
        raise invalid("The body must be a JSON object.")
    return body


def _read(api: Api, call: Call) -> Conversation:
    try:
        return api.read(call)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # A field of a type that no check looked at: vendors refuse it too, if in other words.
        raise invalid(f"Invalid request: a field has a wrong type ({error})") from error


def _model_family(call: Call) -> Family:
    """Return in whose words the model itself refuses: behind Vertex and Bedrock it may be Anthropic's."""
    converse = call.operation in (Operation.CONVERSE, Operation.CONVERSE_STREAM)
    return "anthropic" if call.operation in _MARKED and not converse else call.hosting.family


def _no_model(family: Family, model: str) -> str:
    words = {
        "anthropic": f"model: {model}",
        "google": (
            f"models/{model} is not found for API version v1beta, or is not supported for generateContent."
        ),
        "aws": "The provided model identifier is invalid.",
        "azure": "The API deployment for this resource does not exist.",
        "mistral": f"Invalid model: {model}",
        "openrouter": f"{model} is not a valid model ID",
    }
    return words.get(family, f"The model `{model}` does not exist or you do not have access to it.")


def _too_long(family: Family, prompt: int, most: int) -> str:
    words = {
        "anthropic": f"prompt is too long: {prompt} tokens > {most} maximum",
        "google": (
            f"The input token count ({prompt}) exceeds the maximum number of tokens allowed ({most})."
        ),
        "aws": "Input is too long for requested model.",
    }
    return words.get(
        family,
        f"This model's maximum context length is {most} tokens. However, your messages resulted in {prompt} tokens. "
        "Please reduce the length of the messages.",
    )
