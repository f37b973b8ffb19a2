"""Picture rules: how a model's pictures are made, worked out of its files when the first one comes.

Workers of one model may have other files of their image processor; each set of files has rules of its own, and those
that come to the same numbers, as where the operator's go before them, make pictures alike.

Kept of the files is only what says something about pictures, so that a model that sees none keeps nothing.
"""

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.media.seeing import sees
from smg_node.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    # Loaded with the first picture.
    from smg_node.media.family import Family
    from smg_node.media.video.clip_family import ClipFamily
    from smg_node.prompts.clip_marks import ClipMark

_log = logging.getLogger("smg_node.fleet")

CONFIG: Final = "config.json"
PROCESSORS: Final = (
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
)
_IMAGE_TOKEN_KEYS: Final = ("image_token_id", "image_token_index")
RULES_MAX: Final = 64
"""Different files of one model's workers that are kept; those asked for least recently go first."""


class PictureRules:
    """The files of one model that say how its pictures are made, and the family that follows from them."""

    def __init__(
        self, files: Mapping[str, bytes], overrides: Mapping[str, Any], name: str = ""
    ) -> None:
        """`overrides` are the operator's values, over those of the files; `name` is the model's, for the log."""
        self._name = name
        self._files = files
        self._overrides = overrides
        self.digest: Final = _digest(files)
        """Stands for its files: equal ones have the same."""
        self.known = False
        """Whether it was found out whose rules they follow: then `family` returns at once."""
        self._family: Family | None = None
        self._clip_family: ClipFamily | None = None
        self.why_no_clips = ""
        """Why there is no family of clips, in words; "" where there is one, or nobody has asked yet."""
        self._texts: TokenTexts | None = None
        self.why_not = ""
        """Why there is no family, in words; "" where there is one, or nobody has asked yet."""
        self.anchor = ""
        """What the template writes for a picture: the family's, or what config.json names; "" where nothing is known."""
        self.clips: tuple[ClipMark, ...] = ()
        """What stands for videos and sound, of the kinds that the model takes."""
        self.sees = True
        """Whether its files say that it sees pictures, whatever else is known."""

    def family(self, tokenizer: Tokenizer) -> "Family | None":
        """Return whose rules the model's pictures follow, None where this node does not know them.

        Takes a while at first: it loads what makes pictures, so it belongs in a thread.
        """
        if not self.known:
            self._find(self.tokens(tokenizer))
            self.known = True
        return self._family

    def tokens(self, tokenizer: Tokenizer) -> "TokenTexts":
        """Return the tokens that the model's pictures are written with, which are looked up once."""
        texts = self._texts
        if texts is None or texts.tokenizer is not tokenizer:
            self._texts = texts = TokenTexts(tokenizer)
        return texts

    def clip_family(self, tokenizer: Tokenizer) -> "ClipFamily | None":
        """Return whose rules the model's videos follow, None where this node does not make tensors of them.

        Takes a while at first, as `family` does.
        """
        if self._clip_family is None and not self.why_no_clips:
            self._find_clips(self.tokens(tokenizer))
        return self._clip_family

    def _find_clips(self, tokens: "TokenTexts") -> None:
        from smg_node.media.video.libraries import WITHOUT, has_video_libraries
        from smg_node.media.video.video_registry import UnknownClips, clip_family_of

        found = clip_family_of(self._files, overrides=self._overrides, tokens=tokens)
        if isinstance(found, UnknownClips):
            self.why_no_clips = found.reason
        elif not has_video_libraries():
            self.why_no_clips = WITHOUT
        else:
            self._clip_family = found
        if self.why_no_clips:
            _log.info(
                "model %s: this node makes no tensors of videos: %s", self._name, self.why_no_clips
            )

    def _find(self, tokens: "TokenTexts") -> None:
        from smg_node.media.families.registry import UnknownFamily, family_of
        from smg_node.prompts.clip_marks import clip_marks, token_named

        config = _decoded(self._files.get(CONFIG, b""))
        self.clips, self.sees = clip_marks(config, tokens), sees(config)
        found = family_of(self._files, overrides=self._overrides, tokens=tokens)
        if found is None:
            self.why_not = "its files describe no pictures"
        elif isinstance(found, UnknownFamily):
            self.why_not = found.reason
        else:
            self._family = found
        if self.why_not:
            _log.info(
                "model %s: this node makes no tensors of pictures: %s", self._name, self.why_not
            )
        if self._family is not None:
            self.anchor = self._family.anchor
        else:
            self.anchor = tokens.text(token_named(config, _IMAGE_TOKEN_KEYS)) or ""


class RuleBook:
    """The rules of one model's pictures, by the files of its workers."""

    def __init__(self) -> None:
        self._rules: OrderedDict[str, PictureRules] = OrderedDict()

    def keep(self, rules: PictureRules) -> PictureRules:
        """Return the rules for the same files that are kept already, else `rules`, which are kept now."""
        found = self._rules.setdefault(rules.digest, rules)
        self._rules.move_to_end(rules.digest)
        if len(self._rules) > RULES_MAX:
            self._rules.popitem(last=False)
        return found

    def of(self, digest: str) -> PictureRules | None:
        """Return the rules of files with that digest, None where no worker has brought such."""
        found = self._rules.get(digest)
        if found is not None:
            self._rules.move_to_end(digest)
        return found


class TokenTexts:
    """The tokens that a vocabulary has under exactly a text; see `media.family.TokenLookup`.

    Those that were asked for are remembered: they are the words of a model, never those of a client.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._found: dict[str, int | None] = {}

    def token_id(self, text: str) -> int | None:
        """Return the id of the token that is exactly this text; None if it takes several, or prints another."""
        if text not in self._found:
            self._found[text] = self._token_id(text)
        return self._found[text]

    def _token_id(self, text: str) -> int | None:
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return ids[0] if len(ids) == 1 and self.tokenizer.token_text(ids[0]) == text else None

    def token_ids(self, text: str) -> Sequence[int]:
        """Return the ids of a text that stands alone, without those that begin or end a prompt."""
        return self.tokenizer.encode(text, add_special_tokens=False)

    def text(self, token_id: int | None) -> str | None:
        """Return the text of a token, None for one that the vocabulary has not."""
        if token_id is None or not 0 <= token_id < self.tokenizer.vocabulary:
            return None
        return self.tokenizer.token_text(token_id) or None


def picture_rules(
    bundle: TokenizerBundle, overrides: str | None = None, name: str = ""
) -> PictureRules | None:
    """Return the rules that a model's files hold, None where they say nothing of pictures.

    `overrides` is a JSON object of values that go before those of the files, `name` the model's, for the log.
    """
    config = bundle.files.get(CONFIG, b"")
    found = {name: bundle.files[name] for name in PROCESSORS if name in bundle.files}
    if not found and not sees(_decoded(config)):
        return None
    return PictureRules({CONFIG: config, **found}, _decoded((overrides or "").encode()), name)


def _digest(files: Mapping[str, bytes]) -> str:
    """Return the hex SHA-256 of files, whatever their order."""
    total = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name]):
            total.update(len(part).to_bytes(8, "little"))
            total.update(part)
    return total.hexdigest()


def _decoded(content: bytes) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(content or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
