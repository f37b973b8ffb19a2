"""Served model: one model's tokenizer, template and bounds, shared by all workers that serve it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import structs

from smg_node.core.errors import SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.engine import ModelCard
from smg_node.fleet.models.model_files import ModelFiles
from smg_node.fleet.models.model_options import Labels, ModelSettings
from smg_node.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    # Imported with the first model, see `assembly`; here they are only names of types.
    from smg_node.fleet.models.format_recognition import Recognition
    from smg_node.fleet.models.lazy_model import LazyModel
    from smg_node.fleet.models.picture_rules import PictureRules, RuleBook
    from smg_node.parsers.selection.model_formats import Printing
    from smg_node.prompts.renderer import Renderer
    from smg_node.tokens.caches.cached_encoder import CachedEncoder


@dataclass(slots=True)
class ServedModel:
    """A model behind one name. `renderer` is None where the model has no chat template.

    `why_no_template` then says so to the client. Where it is `unread`, what its files say is not there yet
    (`Models.read`): neither tokenizer nor encoder, renderer, recognition or printing may be used.
    """

    name: str
    created_s: int
    tokenizer: Tokenizer
    encoder: "CachedEncoder"
    renderer: "Renderer | None"
    recognition: "Recognition"
    printing: "Printing"
    """How its answers are read; replaced when the operator or a worker says something else."""
    settings: ModelSettings
    bundle_digest: str
    bundle_context: int | None
    """`max_position_embeddings` of the bundle's config.json, if it has one."""
    aliases: set[str] = field(default_factory=set)
    why_no_template: str = ""
    labels: Labels = field(default_factory=Labels)
    """What the last of its workers that said anything calls its formats."""
    unread: "LazyModel | None" = field(default=None, repr=False, compare=False)
    """Its files, where nobody in this process has needed what they say."""
    pictures: "PictureRules | None" = field(default=None, repr=False, compare=False)
    """How its pictures are made by the files of the worker that came last, None where those say nothing of any."""
    rules: "RuleBook | None" = field(default=None, repr=False, compare=False)
    """The rules of all its workers, None where none said anything of pictures."""
    worked_out: dict[int, Any] = field(default_factory=dict, repr=False, compare=False)
    """What requests to it go by, per card of an engine; see `pipeline.prompt.request_bounds`."""
    pool: str = field(init=False, repr=False, compare=False)
    """What its workers are kept under: a name that no other model of this node has."""

    def __post_init__(self) -> None:
        self.pool = self.name

    def reprint(self, labels: Labels) -> None:
        """Find its output formats anew, by its settings and `labels`."""
        if self.unread is not None:
            self.labels = labels
            return
        self.printing = self.recognition.printing(self.settings, labels)
        self.labels = labels
        if self.renderer is not None:
            self.renderer.name_calls(self.printing.ids)

    def pictures_of(self, card: ModelCard) -> "PictureRules | None":
        """Return how pictures for `card`'s engine are made: by its own files, where those say anything of pictures."""
        media, rules = card.media, self.rules
        if media is None or rules is None or not media.rules:
            return self.pictures
        return rules.of(media.rules) or self.pictures

    def note(self, card: ModelCard, bundle: TokenizerBundle) -> ModelCard:
        """Keep what a worker's files, `bundle`, say of pictures; return its card, which names it then.

        The same card where it takes no pictures, or the files say nothing of any.
        """
        if card.media is None:
            return card
        # Loaded with the first model that sees.
        from smg_node.fleet.models.picture_rules import RuleBook, picture_rules

        made = picture_rules(bundle, self.settings.media_processor, self.name)
        if made is None:
            return card
        if self.rules is None:
            self.rules = RuleBook()
        self.pictures = rules = self.rules.keep(made)
        return replace(card, media=structs.replace(card.media, rules=rules.digest))

    def take(self, reading: ModelFiles) -> None:
        """Take these parts in place of what was not read yet."""
        self.tokenizer, self.encoder = reading.tokenizer, reading.encoder
        self.renderer, self.why_no_template = reading.renderer, reading.why_no_template
        self.recognition, self.printing = reading.recognition, reading.printing
        self.unread = None

    def trouble(self) -> SmgError | None:
        """Return why its files cannot be read, as another process found; a new error each time."""
        finding = self.unread.finding if self.unread is not None else None
        return finding.error() if finding is not None else None

    def vocabulary(self, card: ModelCard) -> int:
        """Return one more than the largest id that `card`'s engine may be sent."""
        ours = self.tokenizer.vocabulary
        return ours if card.vocabulary is None else min(ours, card.vocabulary)

    def known_vocabulary(self, card: ModelCard) -> int | None:
        """Return the same as `vocabulary`, as far as it is known here."""
        if self.unread is None:
            return self.vocabulary(card)
        ours = self.unread.finding.vocabulary if self.unread.finding is not None else 0
        known = [size for size in (ours, card.vocabulary) if size]
        return min(known) if known else None

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
    """A model whose workers speak HTTP: they are sent clients' own requests, and no tokens are
    counted here.

    Where engines serve a model of that name too, these workers get only what an engine cannot do.
    """

    name: str
    created_s: int
    settings: ModelSettings
    aliases: set[str] = field(default_factory=set)
    bundle_digest: str = TEXT_DIGEST
    pool: str = field(init=False)
    """See `ServedModel.pool`."""

    def __post_init__(self) -> None:
        self.pool = f"{self.name} (http)"

    def context(self, card: ModelCard) -> int | None:
        """Return how many tokens prompt and answer may have together, as far as the operator or `card` says."""
        return card.context if self.settings.context is None else self.settings.context


AnyModel: TypeAlias = ServedModel | RelayedModel


def bundle_config(bundle: TokenizerBundle) -> Mapping[str, Any]:
    """Return what config.json says, nothing if there is none or it makes no sense."""
    return _decoded(bundle, "config.json")


def bundle_response_template(bundle: TokenizerBundle) -> Mapping[str, Any] | None:
    """Return the description of its answers that a checkpoint has beside its tokenizer, None if it has none."""
    found = _decoded(bundle, "tokenizer_config.json").get("response_template")
    return found if isinstance(found, dict) else None


def bundle_context(bundle: TokenizerBundle) -> int | None:
    """Return `max_position_embeddings` of config.json, also of a nested text model; None if unsaid."""
    config = bundle_config(bundle)
    for place in (config, config.get("text_config")):
        if isinstance(place, dict):
            value = place.get("max_position_embeddings")
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def _decoded(bundle: TokenizerBundle, name: str) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(bundle.files.get(name, b"null"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
