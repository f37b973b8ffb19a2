"""Target explanation: which API a target is asked in for each API of clients, and what of a request it would not take. Pure.

its client speaks an API of the target    the client's own bytes pass
any other, and what is stored here        read here, written in the API that the target prefers
the target is own engines                 read here, and generated as without a route
"""

from collections.abc import Mapping, Sequence
from typing import Final

from smg_node.cluster.providers.definitions import DefinedProvider
from smg_node.core.errors import SmgError
from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.provider_dialect import WriterOptions
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.http.ports.providers import ApiWay, Refusal, TargetExplained, TargetView
from smg_node.providers.issuers import issuer_of
from smg_node.providers.provider_dialects import provider_dialect
from smg_node.providers.provider_spec import ProviderSpec
from smg_node.providers.route_spec import ENGINES
from smg_node.providers.target import OUTPUT_MAX

PASSED: Final = ("chat", "messages", "generate_content")
"""APIs of clients whose bytes pass where the target speaks them."""
CLIENT_APIS: Final = (*PASSED, "responses", "interactions")
"""All in which a model at a vendor can be asked here; the last two are read here in any case, as they are stored."""
NATIVE: Final = "native"
TRANSLATED: Final = "translated"
GENERATED: Final = "generated"


def explained(
    target: TargetView,
    provider: DefinedProvider | None,
    side: VendorSide | None,
    api: str,
    wish: GenerateRequest | None,
) -> TargetExplained:
    """Return how a target is asked, and what of a request by a client of `api` is lost there.

    `side` is the target if it is open: what its vendor was found to refuse counts as well.
    """
    if target.to.partition("/")[0] == ENGINES:
        return TargetExplained(target, dict.fromkeys(CLIENT_APIS, ApiWay(ENGINES, GENERATED)))
    if provider is None:
        return TargetExplained(target, {})
    spec, model = provider.spec, target.to.partition("/")[2]
    apis = _ways(spec, model)
    if wish is None or not apis or apis[api].way == NATIVE:
        return TargetExplained(target, apis)
    asked = apis[api].api
    options = _options(spec, model) if side is None else side.options(asked)
    try:
        written = provider_dialect(asked, model, options.issuer).write(wish, options)
    except SmgError as error:
        refused = Refusal(error.message, error.where or "", error.code)
        return TargetExplained(target, apis, wish.ignored, refused)
    lacking = [name for name in written.fields if name in options.lacks]
    ignored = tuple(dict.fromkeys((*wish.ignored, *written.ignored, *lacking)))
    return TargetExplained(target, apis, ignored)


def _ways(spec: ProviderSpec, model: str) -> Mapping[str, ApiWay]:
    """Return by API of clients how a model is asked; nothing for a kind that is unknown here."""
    dialects = _dialects(spec, model)
    if not dialects:
        return {}
    return {
        api: ApiWay(
            api if api in dialects else dialects[0],
            NATIVE if api in dialects and api in PASSED else TRANSLATED,
        )
        for api in CLIENT_APIS
    }


def _dialects(spec: ProviderSpec, model: str) -> Sequence[str]:
    hosting = spec.hosting
    return spec.model(model).dialects or (() if hosting is None else hosting.dialects)


def _options(spec: ProviderSpec, model: str) -> WriterOptions:
    own = spec.model(model)
    return WriterOptions(
        model=model,
        issuer=issuer_of(spec.kind, model, spec.name),
        output_max=own.output_max or OUTPUT_MAX,
        quirks=frozenset((*spec.quirks, *own.quirks)),
    )
