"""Model registry: every served model by name and alias, built from the first worker that serves it.

A model's tokenizer comes from the operator's path if there is one, else from the engine. All workers
of a model must agree on its vocabulary: a worker that differs is refused while another one serves the
model, because the same text would become different tokens depending on where it lands.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.fleet.models.lazy_model import LazyModel
from smg_node.fleet.models.load_result import Finding
from smg_node.fleet.models.model_files import ModelFiles
from smg_node.fleet.models.model_log import tell_printing, tell_reading
from smg_node.fleet.models.model_options import Labels, ModelSettings
from smg_node.fleet.models.one_shot_thread import in_own_thread
from smg_node.fleet.models.served_model import AnyModel, RelayedModel, ServedModel, bundle_context
from smg_node.fleet.models.tokenizer_bundles import bundle_from_path
from smg_node.fleet.vocabularies.replacement import REPLACED_CODE
from smg_node.process_memory import trim

if TYPE_CHECKING:
    # Imported with the first model, see `model_assembly`; here they are only names of types.
    from smg_node.fleet.models.format_recognition import Recognition
    from smg_node.prompts.renderer import Renderer
    from smg_node.tokens.caches.cached_encoder import CachedEncoder
    from smg_node.tokens.loaded_tokenizer import LoadedTokenizer

_log = logging.getLogger("smg_node.fleet")
_UNLABELLED: Final = Labels()


@dataclass(frozen=True, slots=True)
class RendererRequest:
    """Model facts for a renderer: the family whose form ids of calls get, and the operator's
    `thinking_key`.
    """

    call_ids: str = ""
    thinking_key: str = ""


@dataclass(frozen=True, slots=True)
class ModelParts:
    """Functions that build a model; the wiring binds settings and shared caches into these.

    `load` and `renderer` block for up to seconds and are called in a thread.
    """

    load: "Callable[[TokenizerBundle], LoadedTokenizer]"
    encoder: "Callable[[LoadedTokenizer], CachedEncoder]"
    renderer: "Callable[[TokenizerBundle, LoadedTokenizer, str | None, RendererRequest], Renderer]"
    """Bundle, tokenizer, template text from the operator; INVALID_REQUEST if there is no template."""
    recognition: "Callable[[str, TokenizerBundle, LoadedTokenizer, str | None], Recognition]"
    """The model's name, bundle, tokenizer, and template text from the operator."""
    faster: "Callable[[LoadedTokenizer, CachedEncoder], Callable[[], None]]"
    """For a tokenizer that can be had faster (`LoadedTokenizer.faster`): makes that, in a thread, and returns what has
    to be called on the loop then."""
    at_once: bool = True
    """Whether files are read when a model's first worker comes, as where requests are served; else when one needs it."""


class Models:
    """Every served model. One owner: the fleet."""

    def __init__(
        self,
        settings: Mapping[str, ModelSettings],
        parts: ModelParts,
        *,
        clock: Clock,
        bundle_max_bytes: int,
    ) -> None:
        self._settings = dict(settings)
        self._parts = parts
        self._clock = clock
        self._bundle_max_bytes = bundle_max_bytes
        self._served: dict[str, ServedModel] = {}
        self._relayed: dict[str, RelayedModel] = {}
        self._names: dict[str, str] = {}
        self._learnt: dict[str, str] = {}
        """Names that followed from a path, by the model's; an operator's names go before them."""
        self._findings: dict[str, Finding] = {}
        """What became of reading, by the model's name: here, or where other processes read and this one does not."""
        self._found: list[Callable[[Finding], None]] = []
        # Workers of one model start together; it must be built once, or each would serve its own.
        self._building = asyncio.Lock()

    def find(self, name: str) -> ServedModel | None:
        """Return the model of that name or alias, if some worker has ever served it; the name goes first."""
        return self._served.get(name) or self._served.get(self._names.get(name, name))

    def find_any(self, name: str) -> ServedModel | None:
        """Return the same, also where the name is an alias that another model's own name goes before."""
        found = self.find(name)
        if found is not None:
            return found
        return next((model for model in self.all() if name in self._others(model)), None)

    def _others(self, model: ServedModel) -> Sequence[str]:
        return *model.settings.aliases, self._learnt.get(model.name, "")

    def all(self) -> list[ServedModel]:
        """Return every model that engines serve, sorted by name."""
        return [self._served[name] for name in sorted(self._served)]

    def relayed(self, name: str) -> RelayedModel | None:
        """Return the model of that name or alias that some HTTP worker has ever served; the name goes first."""
        # Where engines serve everything there is none, and each request asks.
        relayed = self._relayed
        if not relayed:
            return None
        return relayed.get(name) or relayed.get(self._names.get(name, name))

    def all_relayed(self) -> list[RelayedModel]:
        """Return every model that HTTP workers serve, sorted by name."""
        return [self._relayed[name] for name in sorted(self._relayed)]

    def relay(self, name: str) -> RelayedModel:
        """Return the model `name` as HTTP workers serve it."""
        found = self._relayed.get(name)
        if found is None:
            settings = self._settings.get(name, ModelSettings())
            found = RelayedModel(name, self._clock.now_ms() // 1000, settings)
            self._relayed[name] = found
            self._name(found, None)
        return found

    def configured_path(self, name: str) -> str | None:
        """Return where the operator says this model's tokenizer is."""
        settings = self._settings.get(name)
        return settings.tokenizer_path if settings is not None else None

    async def configured_bundle(self, path: str) -> TokenizerBundle:
        """Read the operator's tokenizer."""
        return await asyncio.to_thread(bundle_from_path, path, max_bytes=self._bundle_max_bytes)

    async def adopt(
        self,
        name: str,
        bundle: TokenizerBundle,
        *,
        in_use: Callable[[], bool],
        alias: str | None,
        labels: Labels = _UNLABELLED,
    ) -> ServedModel:
        """Return the model `name` as `bundle` describes it, building it if it is new.

        CONFLICT if it is served already with another vocabulary and `in_use()`, which is asked when it
        is this bundle's turn. `labels` are what a worker of it calls its formats. Where files are read later,
        a failure is the one that another process has found.
        """
        digest = vocabulary_digest(bundle)
        async with self._building:
            found = self._served.get(name)
            if found is not None and found.bundle_digest != digest and in_use():
                raise SmgError(
                    ErrorKind.CONFLICT,
                    f"its tokenizer ({digest[:12]}) differs from the one that {name!r} is served with"
                    f" ({found.bundle_digest[:12]})",
                )
            if found is None or found.bundle_digest != digest:
                found = self._served[name] = await self._made(name, bundle, digest, labels)
                tell_reading(found)
            elif labels != found.labels and (labels.reasoning or labels.tools):
                found.reprint(labels)
                tell_printing(found)
            trouble = found.trouble()
            if trouble is not None:
                raise trouble
        if alias is not None:
            self._learnt[name] = alias
        self._name(found, alias)
        return found

    async def read(self, model: ServedModel) -> None:
        """Return when what `model`'s files say is there; SmgError if they cannot be read, and the next one tries again.

        They are read once, however many wait, and however many of those leave; not where it is known that it fails.
        """
        unread, trouble = model.unread, model.trouble()
        if unread is None:
            return
        if trouble is not None:
            raise trouble
        if unread.under_way is None:
            settings, labels = model.settings, model.labels
            unread.under_way = in_own_thread(
                lambda: self._read(model.name, unread.bundle(), settings, labels)
            )
            unread.under_way.add_done_callback(partial(self._taken, model, settings, labels))
        await asyncio.shield(unread.under_way)

    def findings(self) -> Sequence[Finding]:
        """Return what became of reading, for each model of which anything is known."""
        return [self._findings[name] for name in sorted(self._findings)]

    def watch(self, found: Callable[[Finding], None]) -> None:
        """Call `found` whenever the outcome of reading a model here changes."""
        self._found.append(found)

    def hear(self, finding: Finding) -> ServedModel | None:
        """Take in what another process of this node found; return the model it is about if that is
        unread here.
        """
        self._findings[finding.name] = finding
        model = self._served.get(finding.name)
        if model is None or model.unread is None or model.bundle_digest != finding.digest:
            return None
        model.unread.finding = finding
        return model

    def retune(
        self,
        aliases: Mapping[str, tuple[str, ...]],
        *,
        reasoning_parsers: Mapping[str, str | None],
        tool_parsers: Mapping[str, str | None],
    ) -> None:
        """Take these as all the operator's aliases and parsers, by model; what followed from a path stays."""
        for name in sorted({*self._settings, *aliases, *reasoning_parsers, *tool_parsers}):
            said = self._settings.get(name, ModelSettings())
            self._settings[name] = replace(
                said,
                aliases=aliases.get(name, ()),
                reasoning_parser=reasoning_parsers.get(name),
                tool_parser=tool_parsers.get(name),
            )
        self._names.clear()
        models: list[AnyModel] = [*self.all(), *self.all_relayed()]
        for model in models:
            model.aliases.clear()
            before = model.settings
            model.settings = self._settings.get(model.name, ModelSettings())
            if isinstance(model, ServedModel) and _parsers(before) != _parsers(model.settings):
                model.reprint(model.labels)
                tell_printing(model)
            self._name(model, None)
        for model in models:
            self._name(model, self._learnt.get(model.name))

    def _name(self, model: AnyModel, alias: str | None) -> None:
        for other in [*model.settings.aliases, *([alias] if alias else [])]:
            known = other in self._served or other in self._relayed
            taken = self._names.get(other, other if known else None)
            if taken is not None and taken != model.name:
                _log.warning("alias %s of %s means %s already", other, model.name, taken)
                continue
            self._names[other] = model.name
            model.aliases.add(other)

    # ── Reading ──────────────────────────────────────────────────────────────

    async def _made(
        self, name: str, bundle: TokenizerBundle, digest: str, labels: Labels
    ) -> ServedModel:
        """Return a new model, read or not."""
        # A node that waits for its first worker has no use for it.
        from smg_node.fleet.models.picture_rules import picture_rules

        settings = self._settings.get(name, ModelSettings())
        unread: LazyModel | None = None
        if self._parts.at_once:
            try:
                reading = await in_own_thread(lambda: self._read(name, bundle, settings, labels))
            except SmgError as error:
                if error.code != REPLACED_CODE:
                    self._note(Finding.of_error(name, digest, error))
                raise
            self._note(Finding(name, digest, reading.tokenizer.vocabulary))
            self._quicken(name, reading)
        else:
            unread = await asyncio.to_thread(_packed, bundle)
            heard = self._findings.get(name)
            unread.finding = heard if heard is not None and heard.digest == digest else None
            reading = unread.reading()
        return ServedModel(
            name=name,
            created_s=self._clock.now_ms() // 1000,
            tokenizer=reading.tokenizer,
            encoder=reading.encoder,
            renderer=reading.renderer,
            recognition=reading.recognition,
            printing=reading.printing,
            labels=labels,
            settings=settings,
            bundle_digest=digest,
            bundle_context=bundle_context(bundle),
            why_no_template=reading.why_no_template,
            unread=unread,
            pictures=picture_rules(bundle, settings.media_processor, name),
        )

    def _note(self, finding: Finding) -> None:
        # A worker whose files cannot be read tries again and again.
        if self._findings.get(finding.name) != finding:
            self._findings[finding.name] = finding
            for found in self._found:
                found(finding)

    def _read(
        self, name: str, bundle: TokenizerBundle, settings: ModelSettings, labels: Labels
    ) -> ModelFiles:
        """Read everything; in a thread."""
        tokenizer = self._parts.load(bundle)
        template = None
        if settings.chat_template_path is not None:
            template = _read_template(settings.chat_template_path)
        recognition = self._parts.recognition(name, bundle, tokenizer, template)
        printing = recognition.printing(settings, labels)
        renderer: Renderer | None = None
        why = ""
        try:
            wish = RendererRequest(printing.ids, settings.thinking_key or "")
            renderer = self._parts.renderer(bundle, tokenizer, template, wish)
        except SmgError as error:
            why = error.message
        encoder = self._parts.encoder(tokenizer)
        waits = tokenizer.faster is not None
        faster = partial(self._parts.faster, tokenizer, encoder) if waits else None
        return ModelFiles(tokenizer, encoder, renderer, recognition, printing, why, faster)

    def _quicken(self, name: str, reading: ModelFiles) -> None:
        """Have it encode faster as soon as that can be; requests are served meanwhile."""
        if reading.faster is not None:
            job = in_own_thread(reading.faster)
            job.add_done_callback(partial(_quickened, name, reading))

    def _taken(
        self,
        model: ServedModel,
        settings: ModelSettings,
        labels: Labels,
        done: asyncio.Future[ModelFiles],
    ) -> None:
        """Take these parts and the present settings; before any waiting request goes on."""
        assert model.unread is not None, "it is read once"
        model.unread.under_way = None
        if done.cancelled() or done.exception() is not None:
            # Waiting requests are told.
            return
        reading = done.result()
        model.take(reading)
        self._quicken(model.name, reading)
        if (_parsers(model.settings), model.labels) != (_parsers(settings), labels):
            model.reprint(model.labels)
        tell_reading(model)


def _quickened(name: str, reading: ModelFiles, done: asyncio.Future[Callable[[], None]]) -> None:
    """Go by what was made, or say why that is not there; what it took the place of is given back."""
    if done.cancelled():
        return
    error = done.exception()
    if error is not None:
        _log.error("model %s: its encoder stays slow", name, exc_info=error)
        return
    done.result()()
    _log.info("model %s: encoder %s", name, reading.tokenizer.encoder)


def _packed(bundle: TokenizerBundle) -> LazyModel:
    """Return its files, packed; what they came in is given back."""
    unread = LazyModel(bundle)
    trim()
    return unread


def vocabulary_digest(bundle: TokenizerBundle) -> str:
    """Return the hex SHA-256 of what decides the ids: tokenizer.json or the *.tiktoken file.

    Not the engine's own sum: that covers its archive, which differs between engines of one model.
    """
    total = hashlib.sha256()
    for name in sorted(bundle.files):
        if name == "tokenizer.json" or name.endswith(".tiktoken"):
            total.update(bundle.files[name])
    return total.hexdigest()


def _parsers(settings: ModelSettings) -> tuple[str | None, str | None]:
    return settings.reasoning_parser, settings.tool_parser


def _read_template(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(4 << 20)
    except (OSError, UnicodeDecodeError) as error:
        raise SmgError(
            ErrorKind.INVALID_REQUEST, f"cannot read the chat template {path}: {error}"
        ) from error
