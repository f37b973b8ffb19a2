"""One served model: its tokenizer, template and bounds, shared by all workers that serve it."""

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from smg_node.core.bundle import TokenizerBundle
from smg_node.engines.engine import ModelCard
from smg_node.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    # Imported with the first model, see `assembly`; here they are only names of types.
    from smg_node.prompts.render import Renderer
    from smg_node.tokens.cached import CachedEncoder


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What the operator says about a model, over what is learned."""

    aliases: tuple[str, ...] = ()
    tokenizer_path: str | None = None
    chat_template_path: str | None = None
    context: int | None = None
    prompt_tokens_max: int | None = None


@dataclass(slots=True)
class ServedModel:
    """A model behind one name. `renderer` is None where the model has no chat template.

    `why_no_template` then says so to the client.
    """

    name: str
    created_s: int
    tokenizer: Tokenizer
    encoder: "CachedEncoder"
    renderer: "Renderer | None"
    settings: ModelSettings
    bundle_digest: str
    bundle_context: int | None
    """`max_position_embeddings` of the bundle's config.json, if it has one."""
    aliases: set[str] = field(default_factory=set)
    why_no_template: str = ""

    @property
    def pool(self) -> str:
        """What its workers are kept under: a name that no other model of this node has."""
        return self.name

    def vocabulary(self, card: ModelCard) -> int:
        """Return one more than the largest id that `card`'s engine may be sent."""
        ours = self.tokenizer.vocabulary
        return ours if card.vocabulary is None else min(ours, card.vocabulary)

    def context(self, card: ModelCard) -> int | None:
        """Return how many tokens prompt and answer may have together on `card`'s engine."""
        if self.settings.context is not None:
            return self.settings.context
        known = [value for value in (card.context, self.bundle_context) if value]
        return min(known) if known else None

    def prompt_max(self, card: ModelCard) -> int | None:
        """Return the longest prompt, in tokens, that `card`'s engine takes."""
        if self.settings.prompt_tokens_max is not None:
            return self.settings.prompt_tokens_max
        context = self.context(card)
        known = [value for value in (card.prompt_max, context - 1 if context else None) if value]
        return min(known) if known else None

    def fingerprint(self, card: ModelCard) -> str:
        """Return a short digest of model, engine and template: equal answers come from equal ones."""
        template = self.renderer.template.digest if self.renderer is not None else ""
        text = "\0".join((self.name, card.contract.value, card.server_version, template))
        return "fp_" + hashlib.blake2b(text.encode(), digest_size=5).hexdigest()


TEXT_DIGEST: Final = "text"
"""Stands for a tokenizer where prompts are text."""


@dataclass(slots=True, eq=False)
class RelayedModel:
    """A model whose workers speak HTTP: they are sent what clients sent, and nobody here counts tokens.

    Where engines serve a model of that name too, these workers get only what an engine cannot do.
    """

    name: str
    created_s: int
    settings: ModelSettings
    aliases: set[str] = field(default_factory=set)
    bundle_digest: str = TEXT_DIGEST

    @property
    def pool(self) -> str:
        """See `ServedModel.pool`."""
        return f"{self.name} (http)"

    def context(self, card: ModelCard) -> int | None:
        """Return how many tokens prompt and answer may have together, as far as the operator or `card` says."""
        return card.context if self.settings.context is None else self.settings.context


AnyModel: TypeAlias = ServedModel | RelayedModel


def bundle_context(bundle: TokenizerBundle) -> int | None:
    """Return `max_position_embeddings` of config.json, also of a nested text model; None if unsaid."""
    try:
        config = msgspec.json.decode(bundle.files.get("config.json", b"null"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(config, dict):
        return None
    for place in (config, config.get("text_config")):
        if isinstance(place, dict):
            value = place.get("max_position_embeddings")
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None
