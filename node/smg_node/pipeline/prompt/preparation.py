"""Preparation of prompts: renders, encodes and checks them into token ids safe to send to engines.

Engines crash on an empty prompt or on an id outside their vocabulary, so none of that leaves this
room. Long texts are rendered and encoded in a thread, because the loop has other streams to serve;
short ones are not, because a hop between threads costs more than they do. Texts in between are
encoded on the loop, a bounded amount in each of its rounds.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from smg_node.core.cooperative_steps import REST_S
from smg_node.core.errors import SmgError, invalid, unsupported
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    MediaKind,
    MediaPart,
    Prompt,
    TextPrompt,
    TokenIds,
    TokenPrompt,
    media_of,
)
from smg_node.core.ports import Clock
from smg_node.fleet.models.served_model import ServedModel
from smg_node.parsers.selection.model_formats import Printing
from smg_node.pipeline.prompt.loop_budget import LoopBudget
from smg_node.pipeline.prompt.prompt_asking import Asking
from smg_node.pipeline.stream.call_constraint import schemas_of
from smg_node.prompts.constraints.constraint_check import check_constraint

if TYPE_CHECKING:
    # Loaded with the first picture, or file.
    from smg_node.pipeline.media.file_reader import FileReader
    from smg_node.pipeline.media.media_intake import MediaIntake
    from smg_node.pipeline.media.prompt_media import PromptMedia
    from smg_node.prompts.media_forms import MediaForms

    # A node that waits for its first worker has no use for what encodes.
    from smg_node.tokens.caches.cached_encoder import CachedEncoder
    from smg_node.tokens.caches.exact_cache import Encoded, Key

CHECK_IN_THREAD_ABOVE: Final = 1024
"""Characters of a constraint above which it is checked in a thread (about 1 ms of work)."""
APPROVED_MAX: Final = 64
"""Constraints remembered as good; at most a few megabytes, as they are bounded themselves."""
RENDER_IN_THREAD_ABOVE: Final = 32 * 1024
"""Characters of a conversation above which its template is rendered in a thread (about 1 ms of work)."""

IDS_A_ROUND: Final = 65_536
"""Ids of a request's many prompts that are checked in one round of the loop (about 1 ms of work)."""
PROMPTS_A_ROUND: Final = 32
"""Prompts of one request that are looked at in one round, however short they are."""
_REST: Final = partial(time.sleep, REST_S)
TURN_CHARACTERS: Final = 128
"""What a turn of a conversation weighs besides its text: rendering an empty one takes as long."""

T = TypeVar("T")

_log = logging.getLogger("smg_node.pipeline")


class Prepared(msgspec.Struct, frozen=True, gc=False):
    """One prompt, ready to be sent. `text` is what was encoded; "" for token prompts.

    `ignored` names the parameters that the model's template cannot honour. `packed` are the ids as
    varints, b"" where they are not packed yet. `media` are its pictures, whose places are among the ids; whoever
    prepared it closes them.
    """

    ids: TokenIds
    text: str
    where: str
    ignored: tuple[str, ...] = ()
    packed: bytes = b""
    media: "PromptMedia | None" = None


@dataclass(frozen=True, slots=True)
class PrepareLimits:
    """Maximum size of a constraint, in bytes."""

    schema_max_bytes: int = 2_097_152
    grammar_max_bytes: int = 65_536


class Preparer:
    """Turns prompts into ids, and refuses constraints that no engine should be sent."""

    def __init__(
        self,
        *,
        clock: Clock,
        threads: Executor,
        limits: PrepareLimits | None = None,
        media: "Callable[[], MediaIntake] | None" = None,
        files: "Callable[[], FileReader] | None" = None,
    ) -> None:
        """`media` returns what takes pictures in, `files` what reads files, both made at their first call.

        Without them no model takes any.
        """
        self._clock = clock
        self._now_ms = clock.now_ms
        self._threads = threads
        self._turns = LoopBudget()
        self._media = media
        self._files = files
        self._limits = limits if limits is not None else PrepareLimits()
        # Applications send the same schema with every request; checking a large one takes a while.
        self._approved: OrderedDict[tuple[str, str], None] = OrderedDict()

    def retune(self, limits: PrepareLimits) -> None:
        """Apply other limits from now on; constraints approved under the old ones are checked
        again.
        """
        self._limits = limits
        self._approved.clear()

    async def constraint(self, constraint: Constraint | None) -> None:
        """Check a constraint, a large one in a thread; INVALID_REQUEST with the path of the error."""
        if constraint is None:
            return
        key = (constraint.kind, constraint.value)
        if key in self._approved:
            self._approved.move_to_end(key)
            return
        schema = constraint.kind == "json_schema"
        limits = self._limits
        max_bytes = limits.schema_max_bytes if schema else limits.grammar_max_bytes
        if len(constraint.value) <= CHECK_IN_THREAD_ABOVE:
            check_constraint(constraint, max_bytes=max_bytes)
        else:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(
                self._threads, lambda: check_constraint(constraint, max_bytes=max_bytes)
            )
        self._approved[key] = None
        if len(self._approved) > APPROVED_MAX:
            self._approved.popitem(last=False)

    async def constraints(self, request: GenerateRequest, printing: Printing) -> None:
        """Check a request's constraint, and the schemas of tools that may become part of one."""
        asked = request.sampling.constraint
        if asked is not None:
            await self.constraint(asked)
        for prompt in request.prompts:
            for schema in schemas_of(prompt, asked, printing):
                await self.constraint(schema)

    def soon(
        self, request: GenerateRequest, model: ServedModel
    ) -> tuple[Prepared, ...] | Awaitable[tuple[Prepared, ...]] | None:
        """Return the result of `prepared` for a plain chat, or an awaitable of it where that takes
        a while.

        None for other requests, and where the prompt's skeleton is not known yet.
        """
        renderer = model.renderer
        if not request.alike or renderer is None or (forms := renderer.forms) is None:
            return None
        # A chat: the only prompt of what is alike.
        prompt: Any = request.prompts[0]
        text = forms.plain_text(prompt.turns, self._now_ms)
        if text is None:
            return None
        encoder, special = model.encoder, prompt.add_special_tokens
        if len(text) <= encoder.surely_short:
            found = encoder.encode(text, add_special_tokens=special)
        else:
            key = encoder.key(text, add_special_tokens=special)
            known = encoder.lookup(key)
            if known is None:
                return self._later(encoder, text, key, prompt)
            found = known
        return (Prepared(found.ids, text, prompt.where, (), found.packed),)

    async def _later(
        self, encoder: "CachedEncoder", text: str, key: "Key | None", prompt: ChatPrompt
    ) -> tuple[Prepared, ...]:
        found = await self._encoded(encoder, text, key, special=prompt.add_special_tokens)
        return (Prepared(found.ids, text, prompt.where, (), found.packed),)

    async def prepared(
        self,
        request: GenerateRequest,
        model: ServedModel,
        tenant: str | None = None,
        patient_until_s: float = 0.0,
    ) -> tuple[Prepared, ...]:
        """Return all prompts of a request, rendered and encoded, when its constraints have been checked.

        `tenant` is whose request it is, None where that is not known. `patient_until_s` is until when room for its
        pictures is waited for, 0 for not at all.
        """
        await self.constraints(request, model.printing)
        return tuple(await self.prompts(request, model, tenant, patient_until_s))

    async def prompts(
        self,
        request: GenerateRequest,
        model: ServedModel,
        tenant: str | None = None,
        patient_until_s: float = 0.0,
    ) -> list[Prepared]:
        """Render and encode every prompt of a request."""
        prompts = request.prompts
        if len(prompts) == 1:
            return [await self.prompt(prompts[0], model, tenant, patient_until_s)]
        prepared: list[Prepared] = []
        for prompt in prompts:
            await self.pace(token_count(prompt))
            prepared.append(await self.prompt(prompt, model, tenant, patient_until_s))
        return prepared

    async def counted(self, prompt: Prompt, model: ServedModel) -> Prepared:
        """Render and encode one prompt that nobody is sent; of pictures only the files' headers are read."""
        prepared = await self.prompt(prompt, model, counted=True)
        if prepared.media is not None:
            prepared.media.close()
        return prepared

    async def pace(self, ids: int = 0) -> None:
        """Return when the loop has a round in which one of many prompts, of so many ids, may be looked at."""
        await self._turns.turn(ids / IDS_A_ROUND + 1 / PROMPTS_A_ROUND)

    async def prompt(
        self,
        prompt: Prompt,
        model: ServedModel,
        tenant: str | None = None,
        patient_until_s: float = 0.0,
        *,
        counted: bool = False,
    ) -> Prepared:
        """Render and encode one prompt; INVALID_REQUEST where the template or the ids object.

        One that is `counted` is sent to nobody.
        """
        if type(prompt) is TokenPrompt:
            return Prepared(prompt.ids, "", prompt.where)
        if type(prompt) is ChatPrompt:
            ignored: list[str] = []
            text = self._rendered(prompt, model, ignored)
            if text is None:
                if self._files is not None and has_media(prompt, "file"):
                    prompt = await self._files().read(prompt, patient_until_s)
                if self._media is not None and has_media(prompt):
                    intake = self._intake(prompt)
                    asking = Asking(tenant, patient_until_s, counted)
                    return await self._with_media(intake, prompt, model, asking)
                text = await self.in_thread(self._rendering(prompt, model, ignored, rest=_REST))
            told = tuple(ignored)
        else:
            assert type(prompt) is TextPrompt
            text, told = prompt.text, ()
        encoder, special = model.encoder, prompt.add_special_tokens
        key = encoder.key(text, add_special_tokens=special)
        found = encoder.lookup(key)
        if found is None:
            found = await self._encoded(encoder, text, key, special=special)
        return Prepared(found.ids, text, prompt.where, told, found.packed)

    def _intake(self, prompt: ChatPrompt) -> "MediaIntake":
        """Return what takes pictures in; INVALID_REQUEST at the first part where this node was installed without."""
        assert self._media is not None, "who is asked for it has it"
        try:
            return self._media()
        except SmgError as error:
            raise unsupported(error.message, media_of(prompt.turns)[0].where) from error

    async def _with_media(
        self, intake: "MediaIntake", prompt: ChatPrompt, model: ServedModel, asking: "Asking"
    ) -> Prepared:
        """Render and encode a conversation with pictures, and take those in; what is cached has one id a picture."""
        ignored: list[str] = []
        asked = await intake.asked(prompt, model, asking.tenant)
        if prompt.template is None and _characters(prompt) <= RENDER_IN_THREAD_ABOVE:
            text = self._rendering(prompt, model, ignored, media=asked.forms)()
        else:
            render = self._rendering(prompt, model, ignored, rest=_REST, media=asked.forms)
            text = await self.in_thread(render)
        encoder, special = model.encoder, prompt.add_special_tokens
        key = encoder.key(text, add_special_tokens=special)
        found = encoder.lookup(key)
        if found is None:
            found = await self._encoded(encoder, text, key, special=special)
        until_s, counted = asking.patient_until_s, asking.counted
        media = await intake.media(asked, found.ids, model.name, until_s, counted=counted)
        same = media.ids is found.ids
        packed = found.packed if same else b""
        return Prepared(media.ids, text, prompt.where, tuple(ignored), packed, media)

    async def _encoded(
        self, encoder: "CachedEncoder", text: str, key: "Key | None", *, special: bool
    ) -> "Encoded":
        """Encode a text that is not cached, where that does not block the loop for long."""
        if encoder.long(text):
            found = await self.in_thread(
                lambda: encoder.encode_missing(text, add_special_tokens=special)
            )
        else:
            if len(text) > encoder.surely_short:
                await self._turns.turn(len(text) / encoder.round_characters)
                known = encoder.lookup(key)
                if known is not None:
                    # Somebody before it in line had the same.
                    return known
            found = encoder.encode_missing(text, add_special_tokens=special)
        encoder.store(key, found)
        return found

    def _rendered(self, prompt: ChatPrompt, model: ServedModel, ignored: list[str]) -> str | None:
        """Return the prompt's text; None where making it would block the loop."""
        renderer = model.renderer
        if renderer is None:
            raise invalid(
                f"the model {model.name!r} has no chat template ({model.why_no_template}); use"
                f" /v1/completions, or set models.{model.name}.chat_template",
                "messages",
            )
        known = renderer.known(prompt, now_ms=self._clock.now_ms())
        if known is not None:
            return known
        if has_media(prompt):
            return None
        # A template that came with the request has to be compiled first, which takes up to a second.
        if prompt.template is None and _characters(prompt) <= RENDER_IN_THREAD_ABOVE:
            return self._rendering(prompt, model, ignored)()
        return None

    def _rendering(
        self,
        prompt: ChatPrompt,
        model: ServedModel,
        ignored: list[str],
        *,
        rest: Callable[[], None] | None = None,
        media: "MediaForms | None" = None,
    ) -> Callable[[], str]:
        """Return the rendering function; what the template cannot honour is added to `ignored`."""

        def note(what: str, parameter: str = "", /) -> None:
            # A client can cause any number of these.
            _log.info("a conversation and its template: %s", what)
            if parameter and parameter not in ignored:
                ignored.append(parameter)

        renderer = model.renderer
        assert renderer is not None
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        return lambda: renderer.render(
            prompt, now=now, warn=note, rest=rest, media=media, model=model.name
        )

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, done beside the loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def token_count(prompt: Prompt) -> int:
    """Return how many ids a prompt came as, 0 for a text."""
    return len(prompt.ids) if type(prompt) is TokenPrompt else 0


def has_media(prompt: ChatPrompt, kind: MediaKind | None = None) -> bool:
    """Whether a conversation has parts that are not text, of any kind or of one."""
    for turn in prompt.turns:
        content = turn.content
        if type(content) is tuple:
            for part in content:
                if type(part) is MediaPart and kind in (None, part.kind):
                    return True
    return False


def _characters(prompt: ChatPrompt) -> int:
    total = TURN_CHARACTERS * (len(prompt.turns) + len(prompt.tools))
    for turn in prompt.turns:
        for call in turn.calls:
            total += TURN_CHARACTERS + len(call.arguments)
        if isinstance(turn.content, str):
            total += len(turn.content)
        elif turn.content is not None:
            total += sum(len(getattr(part, "text", "")) for part in turn.content)
    return total
