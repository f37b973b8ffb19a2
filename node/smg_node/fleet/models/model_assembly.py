"""Model assembly: builds a model's tokenizer, its encoder with caches, and its chat template.

Imported with the first model and not before (`serving_parts.model_parts`): it brings two tokenizer
libraries and the template engine, 9 MB that a node without workers does not hold.
"""

from collections.abc import Callable
from dataclasses import dataclass
from logging import getLogger

from smg_node.core.errors import SmgError
from smg_node.core.ports import Rng
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.fleet.models.format_recognition import Recognition
from smg_node.fleet.models.model_registry import RendererRequest
from smg_node.fleet.models.served_model import bundle_config, bundle_response_template
from smg_node.fleet.vocabularies.shared_vocabularies import SharedVocabularies
from smg_node.parsers.selection.recognition import Clues
from smg_node.process_memory import trim
from smg_node.prompts.analysis.template_selection import find_templates
from smg_node.prompts.jinja.chat_template import TemplateLimits
from smg_node.prompts.renderer import Renderer, RenderOptions, renderer_of
from smg_node.tokens.caches.cached_encoder import CachedEncoder
from smg_node.tokens.caches.exact_cache import ExactCache
from smg_node.tokens.caches.prefix_cache import PrefixCache, prefix_cache
from smg_node.tokens.files.huggingface import EncoderChoice, Proofs
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from smg_node.tokens.loader import load

_log = getLogger("smg_node.fleet")


@dataclass(frozen=True, slots=True)
class AssemblyOptions:
    """Operator's options for all models; see the knobs of `tokens` and `templates`."""

    encoder: EncoderChoice
    l1_max_bytes: int
    thread_above_bytes: int
    source_max_bytes: int
    output_max_bytes: int
    render_max_s: float
    allow_from_request: bool


class Assembly:
    """Builds the parts of models; every method may take seconds and belongs in a thread.

    All models share `l0`; `rng` seeds the names of what is kept for each; `proofs` spare later processes most of reading,
    and `shared` all of it where a template process has read the files.
    """

    def __init__(
        self,
        options: AssemblyOptions,
        *,
        l0: ExactCache,
        rng: Rng,
        monotonic_s: Callable[[], float],
        proofs: Proofs | None = None,
        shared: SharedVocabularies | None = None,
    ) -> None:
        self._proofs = proofs
        self._shared = shared
        self._options = options
        self._l0 = l0
        self._rng = rng
        self._monotonic_s = monotonic_s
        self._render = RenderOptions(
            limits=TemplateLimits(
                source_max_bytes=options.source_max_bytes,
                output_max_bytes=options.output_max_bytes,
                render_max_s=options.render_max_s,
            ),
            allow_from_request=options.allow_from_request,
        )

    def load(self, bundle: TokenizerBundle) -> LoadedTokenizer:
        """Return the tokenizer of `bundle`; every failure is an SmgError."""
        found = self._shared.find(bundle) if self._shared is not None else None
        return found or load(bundle, encoder=self._options.encoder, trim=trim, proofs=self._proofs)

    def encoder(self, tokenizer: LoadedTokenizer) -> CachedEncoder:
        """Return `tokenizer` with the caches in front that its vocabulary allows."""
        return CachedEncoder(
            tokenizer,
            self._l0,
            self._l1(tokenizer),
            long_above_bytes=self._options.thread_above_bytes,
        )

    def faster(self, tokenizer: LoadedTokenizer, encoder: CachedEncoder) -> Callable[[], None]:
        """Give `tokenizer` what its `faster` makes; return what has `encoder` go by that, to be called on the loop."""
        assert tokenizer.faster is not None, "there is something to wait for"
        tokenizer.take(*tokenizer.faster())
        l1 = self._l1(tokenizer)
        return lambda: encoder.reconsider(l1)

    def _l1(self, tokenizer: LoadedTokenizer) -> PrefixCache | None:
        if tokenizer.faster is not None:
            # It would be of no use in a second, and to find out whether there may be one takes a tenth of that.
            return None
        l1, why_not = prefix_cache(
            tokenizer, max_bytes=self._options.l1_max_bytes, seed=self._rng.getrandbits(64)
        )
        for what, why in (
            ("fast encoder", tokenizer.report.why_encoder),
            ("token table", tokenizer.report.why_speller),
            ("prefix cache", why_not),
        ):
            if why:
                _log.info("no %s for this tokenizer: %s", what, why)
        return l1

    def renderer(
        self,
        bundle: TokenizerBundle,
        tokenizer: LoadedTokenizer,
        template: str | None,
        wish: RendererRequest,
    ) -> Renderer:
        """Return the renderer of `bundle`, with the operator's `template` if there is one."""
        return renderer_of(
            bundle,
            tokenizer.special_tokens,
            configured=template,
            options=self._render,
            monotonic_s=self._monotonic_s,
            call_ids=wish.call_ids,
            thinking_key=wish.thinking_key,
        )

    def recognition(
        self, name: str, bundle: TokenizerBundle, tokenizer: LoadedTokenizer, template: str | None
    ) -> Recognition:
        """Return the evidence for what the model `name` prints; `template` as in `renderer`."""
        try:
            texts = find_templates(bundle, template).texts
        except SmgError:
            texts = {}  # the renderer says what is wrong with it
        special = frozenset(tokenizer.token_text(token) for token in tokenizer.special_ids)
        config = bundle_config(bundle)
        called = config.get("_name_or_path")
        clues = Clues(
            names=(name, called) if isinstance(called, str) and called else (name,),
            template="\n".join(texts[each] for each in sorted(texts)),
            added_tokens=frozenset(tokenizer.added_tokens),
            config=config,
            response_template=bundle_response_template(bundle),
        )
        return Recognition(clues, special - {""})
