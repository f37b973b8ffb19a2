"""HTTP engine: a worker behind an OpenAI-like HTTP API: asked for model and load, sent clients' own
requests.

It is an `Engine` as far as the fleet is concerned: it is looked at, says which model it serves and how busy it
is. It takes no token ids; `relay` hands it a request's own bytes and gives back the answer's.

Its model: the one that its operator names, else the only one it lists beside adapters. Where the
operator's name is none of those listed and there is just one, the name is this cluster's own for
it: requests are sent under the worker's name, and answers have it replaced
(`pipeline/relay/json_rewrite`).
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import ChunkStream
from smg_node.engines.contracts.engine_metadata import flattened, whole
from smg_node.engines.contracts.pairing_rules import (
    scheduler_pairing,
    scheduler_ranks,
    scheduler_role,
)
from smg_node.engines.disaggregation import Pairing, Role
from smg_node.engines.engine import (
    Abilities,
    Contract,
    Embedded,
    EmbedRequest,
    EngineRequest,
    ModelCard,
    Prefilled,
)
from smg_node.engines.engine_options import EngineOptions, Observe, unobserved
from smg_node.engines.http.response_stream import HttpStream, silent
from smg_node.engines.http.server_metadata import (
    ListedModel,
    listed_models,
    load_of_metrics,
    load_rows,
    settings_of,
    version_of,
)
from smg_node.engines.http.status_mapping import not_implemented, seen
from smg_node.engines.http.transport import NOT_SERVING_CODE, HttpCall, HttpTransport
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.engines.kv_events import KvBatch
from smg_node.engines.load import Load
from smg_node.engines.transport.grpc_status import closed_here, smg_error
from smg_node.engines.transport.stream_timeouts import Limit, Watch, Watches
from smg_node.engines.transport.transport import TransportError

ABOUT_MAX_BYTES: Final = 4 * 1024 * 1024
"""The longest page that a worker is believed to fill about itself; metrics of one take 100 KB."""
LOADS_APART_S: Final = 5.0
MODELS_PATH: Final = "/v1/models"
ABILITIES: Final = Abilities(
    stop_strings=True,
    native_n=True,
    seed=True,
    min_tokens=True,
    logit_bias=True,
    logprobs_max=20,
    prompt_logprobs=False,
    constraints=frozenset(),
    adapters=False,
    penalties=True,
    loads=True,
    kv_events=False,
    loads_apart_s=LOADS_APART_S,
)
_HIDDEN: Final = b"[the API key]"
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class RelayRequest:
    """A client's request for a worker: the path of an API, the body to send, the time that is left.

    Without `streamed`, a worker may be silent until its answer is whole; but no longer than before the first word
    of a stream if all it is to do is to work the prompt off (`prefill`). `attempt` counts the calls for it.
    """

    path: str
    body: bytes
    streamed: bool
    timeout_s: float
    headers: Mapping[str, str] = field(default_factory=dict)
    silences: int = 0
    """Calls for the same words that ended because nothing came: the next one bears less of it."""
    prefill: bool = False


class HttpEngine:
    """One worker; see `engine.Engine`. `target` is its host:port."""

    contract = Contract.OPENAI
    vendor: VendorSide | None = None
    """Where it is a model at a vendor: how that is spoken to."""
    own_model: str = ""
    """Where it stands for a model of this cluster's own workers: that model's name; see `own_engines`."""

    def __init__(
        self,
        transport: HttpTransport,
        options: EngineOptions,
        *,
        model: str | None = None,
        api_key: str | None = None,
        on_event: Observe = unobserved,
    ) -> None:
        self.abilities = ABILITIES
        self.served_name = ""
        """What it calls its model."""
        self.lacking: set[str] = set()
        """Paths of APIs that it was found not to have."""
        self.thinks = False
        """Whether an answer of it was seen to have a thought."""
        self._transport = transport
        self._options = options
        self._model = model
        self._key = {"authorization": f"Bearer {api_key}"} if api_key is not None else {}
        self._secret = b"" if api_key is None else api_key.encode()
        self._on_event = on_event
        self._about: Mapping[str, str] = {}
        self._version = ""
        self._running_max: int | None = None
        self._role: Role = "regular"
        self._pairing: Pairing | None = None
        self._ranks = 1
        self._asked_about = False
        self._load_path: str | None = None
        self._watches: Watches | None = None
        self._closed = False

    @property
    def target(self) -> str:
        """Its host:port."""
        return self._transport.target

    # ── Requests ─────────────────────────────────────────────────────────────

    async def relay(self, request: RelayRequest) -> HttpStream:
        """Send a request; return its answer once the head is there, whatever its status. Close it in any case.

        SmgError if nothing came: UPSTREAM_TIMEOUT past a limit, UPSTREAM_FAILED for anything broken.
        """
        if self._closed:
            raise closed_here()
        options = self._options
        early = request.streamed or request.prefill
        first_s = options.first_event_s / (1 + request.silences) if early else None
        wait_s = request.timeout_s if first_s is None else min(first_s, request.timeout_s)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        headers = {"content-type": _JSON, "accept": "*/*", **request.headers, **self._key}
        call = HttpCall("POST", request.path, headers, request.body)
        try:
            async with asyncio.timeout(wait_s):
                answer = await self._transport.send(call)
        except TimeoutError as error:
            late = wait_s == request.timeout_s
            limit = Limit.DEADLINE if late else Limit.FIRST_EVENT
            self._count("engine_timeout", limit=limit.value)
            raise silent(limit, wait_s) from error
        except TransportError as error:
            raise self._broken(error) from error
        took_s = loop.time() - began_s
        if self._watches is None:
            self._watches = Watches(loop)
        watch = Watch(
            self._watches,
            answer.close,
            deadline_s=max(request.timeout_s - took_s, 0.001),
            first_event_s=None if first_s is None else max(first_s - took_s, 0.001),
            stall_s=options.stall_s if request.streamed else None,
        )
        return HttpStream(answer, watch, self._broken, stall_s=options.stall_s)

    def discreet(self, words: bytes) -> bytes:
        """Return a text of the worker without its key, should it repeat it."""
        return words.replace(self._secret, _HIDDEN) if self._secret else words

    def _broken(self, error: TransportError) -> SmgError:
        if self._closed:
            return closed_here()
        self._count("engine_error", status=error.status.name)
        return smg_error(error)

    # ── What it says of itself ───────────────────────────────────────────────

    async def serving(self, timeout_s: float) -> bool:
        """Return that `/health` says yes, or, of a server without it, that `/v1/models` answers.

        SmgError that says what was seen, otherwise; code `upstream_not_serving` if it was an answer.
        """
        try:
            await self._check_health(timeout_s)
        except SmgError:
            # Whoever comes back may be another one.
            self.lacking.clear()
            self.thinks = False
            raise
        return True

    async def _check_health(self, timeout_s: float) -> None:
        path = "/health"
        status, _ = await self._get(path, timeout_s)
        if status in (404, 405, 501):
            path = MODELS_PATH
            status, _ = await self._get(path, timeout_s)
        if not 200 <= status < 300:
            raise self._not_serving(path, status)

    def _not_serving(self, path: str, status: int) -> SmgError:
        said = f"{self.target}: {seen(path, status)}"
        return SmgError(ErrorKind.UPSTREAM_FAILED, said, code=NOT_SERVING_CODE)

    async def healthy(self, timeout_s: float) -> bool:
        """See `serving`."""
        return await self.serving(timeout_s)

    async def card(self, timeout_s: float) -> ModelCard:
        """Return its model card; CONFLICT if it is not clear which model it serves."""
        status, body = await self._get(MODELS_PATH, timeout_s)
        if status not in (200, 404, 405, 501):
            raise self._not_serving(MODELS_PATH, status)
        listed = listed_models(body) if status == 200 else ()
        name, one = self._chosen(listed, status)
        self.served_name = one.name if one is not None else name
        if not self._asked_about:
            await self._ask_about(timeout_s)
        return ModelCard(
            contract=self.contract,
            model=name,
            model_path=one.path if one is not None else "",
            context=one.context if one is not None else None,
            prompt_max=None,
            vocabulary=None,
            eos_ids=(),
            server_version=self._version,
            server={
                **self._about,
                "served_name": self.served_name,
                **({"owned_by": one.owned_by} if one is not None and one.owned_by else {}),
            },
            running_max=self._running_max,
            role=self._role,
            pairing=self._pairing,
            ranks=self._ranks,
        )

    def _chosen(self, listed: Sequence[ListedModel], status: int) -> tuple[str, ListedModel | None]:
        """Return the model's name here, and the listed entry it is."""
        wanted = self._model
        named = next((one for one in listed if one.name == wanted), None)
        if wanted is not None and named is not None:
            return wanted, named
        whole_models = [one for one in listed if not one.adapter]
        if len(whole_models) > 1:
            names = ", ".join(one.name for one in whole_models[:8])
            raise SmgError(
                ErrorKind.CONFLICT,
                f"it lists {len(whole_models)} models ({names}); add ?model=NAME to its URL",
            )
        only = whole_models[0] if whole_models else None
        name = wanted or (only.name if only is not None else "")
        if not name:
            why = seen(MODELS_PATH, status) if status != 200 else "it lists no model"
            raise SmgError(ErrorKind.CONFLICT, f"{why}; add ?model=NAME to its URL")
        return name, only

    async def _ask_about(self, timeout_s: float) -> None:
        """Ask for what only some servers tell; once, because it does not change while one runs."""
        status, body = await self._get("/get_server_info", timeout_s)
        if status == 200:
            settings = settings_of(body)
            self._about = flattened(settings)
            self._running_max = whole(settings.get("max_running_requests"))
            self._role = scheduler_role(settings)
            self._pairing = scheduler_pairing(settings)
            self._ranks = scheduler_ranks(settings)
        status, body = await self._get("/version", timeout_s)
        self._version = version_of(body) if status == 200 else ""
        self._asked_about = True

    async def loads(self, timeout_s: float) -> Sequence[Load]:
        """Return its load; UPSTREAM_FAILED with status 501 where it does not say."""
        paths = (self._load_path,) if self._load_path is not None else ("/get_load", "/metrics")
        for path in paths:
            status, body = await self._get(path, timeout_s)
            if status >= 500 and status != 501:
                raise SmgError(ErrorKind.UPSTREAM_FAILED, f"{path} failed with status {status}")
            if status != 200:
                continue
            if path == "/metrics":
                load = load_of_metrics(body)
                rows: Sequence[Load] = () if load is None else (load,)
            else:
                rows = load_rows(body)
            if rows:
                self._load_path = path
                return rows
        raise not_implemented("the worker does not say how busy it is")

    async def _get(self, path: str, timeout_s: float) -> tuple[int, bytes]:
        """Return status and body of a page; SmgError if there was no answer, or one beyond belief."""
        if self._closed:
            raise closed_here()
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._transport.send(HttpCall("GET", path, self._key))
                try:
                    parts: list[bytes] = []
                    size = 0
                    while part := await answer.read():
                        size += len(part)
                        if size > ABOUT_MAX_BYTES:
                            raise SmgError(
                                ErrorKind.UPSTREAM_FAILED,
                                f"{path} is larger than {ABOUT_MAX_BYTES} bytes",
                            )
                        parts.append(part)
                    return answer.status, b"".join(parts)
                finally:
                    answer.close()
        except TimeoutError as error:
            raise SmgError(
                ErrorKind.UPSTREAM_TIMEOUT,
                f"{self.target}: {path} was not answered within {timeout_s:g} s",
            ) from error
        except TransportError as error:
            broken = self._broken(error)
            said = f"{self.target}: {error.message}"
            raise SmgError(broken.kind, said, code=broken.code, status=broken.status) from error

    # ── What it does not do ──────────────────────────────────────────────────

    async def tokenizer(self, timeout_s: float) -> TokenizerBundle:
        """Raise that it hands out no tokenizer."""
        raise not_implemented("a worker that speaks HTTP keeps its tokenizer to itself")

    async def kv_events(self, start: int) -> AsyncGenerator[Sequence[KvBatch], None]:
        """Raise that it does not tell what it caches."""
        raise not_implemented("a worker that speaks HTTP does not tell what it caches")
        yield ()  # the language knows generators by this word

    async def generate(self, request: EngineRequest) -> AsyncGenerator[Sequence[Chunk], None]:
        """Raise that it takes no token ids."""
        raise not_implemented("a worker that speaks HTTP takes no token ids")
        yield ()  # as above

    def call(self, request: EngineRequest) -> ChunkStream:
        """Raise that it takes no token ids."""
        raise not_implemented("a worker that speaks HTTP takes no token ids")

    async def prefill(self, request: EngineRequest) -> Prefilled:
        """Raise that it takes no token ids."""
        raise not_implemented("a worker that speaks HTTP takes no token ids")

    async def embed(self, request: EmbedRequest) -> Embedded:
        """Raise that it takes no token ids."""
        raise not_implemented("a worker that speaks HTTP takes no token ids")

    async def abort(self, request_id: str) -> None:
        """Do nothing: a closed connection is what ends a request there."""

    # ── Life ─────────────────────────────────────────────────────────────────

    def retune(self, *, first_event_s: float, stall_s: float) -> None:
        """See `Engine`."""
        self._options = replace(self._options, first_event_s=first_event_s, stall_s=stall_s)

    async def close(self) -> None:
        """Close all connections; open answers end with UPSTREAM_FAILED `worker_removed`."""
        self._closed = True
        await self._transport.close()

    def _count(self, name: str, **labels: str) -> None:
        self._on_event(name, {"contract": self.contract.value, **labels})
