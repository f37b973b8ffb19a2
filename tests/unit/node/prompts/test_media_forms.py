"""Pictures among the texts of a conversation, in the form that each family's template wants."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import (
    ChatPrompt,
    MediaKind,
    MediaPart,
    Part,
    TextPart,
    ToolCall,
    Turn,
)
from smg_node.prompts.clip_marks import ClipMark
from smg_node.prompts.jinja.prompt_skeleton import form_of
from smg_node.prompts.media_forms import MediaForms, ordered_media
from smg_node.prompts.renderer import Renderer
from support.models.prompt_corpus import NOW, TIDE, renderer, source

FOLDER: Final = Path(__file__).parent / "media_templates"
QWEN_ANCHOR: Final = "<|image_pad|>"
QWEN_SHOWN: Final = "<|vision_start|><|image_pad|><|vision_end|>"
ANCHORS: Final[Mapping[str, str]] = {
    "qwen2_5_vl": QWEN_ANCHOR,
    "qwen3_vl": QWEN_ANCHOR,
    "llava": "<image>",
    "llama4": "<|image|>",
    "pixtral": "[IMG]",
    "gemma3": "<start_of_image>",
    "phi4": "<|endoftext10|>",
    "glm4v": "<|image|>",
    "asks_for_urls": "<pic>",
}
NAMES: Final = tuple(ANCHORS)
QWEN: Final = MediaForms(QWEN_ANCHOR, literal=QWEN_SHOWN)


def model(name: str) -> Renderer:
    return renderer((FOLDER / f"{name}.jinja").read_text(encoding="utf-8"))


def picture(at: int = 0, kind: MediaKind = "image") -> MediaPart:
    return MediaPart(kind, f"https://e.com/{at}.png", f"messages[0].content[{at}].image_url")


def user(*parts: Part | str) -> Turn:
    return Turn("user", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def shown(name: str, *turns: Turn, forms: MediaForms | None = None) -> str:
    forms = forms or MediaForms(ANCHORS[name], "as_sent")
    return model(name).render(ChatPrompt(turns), now=NOW, media=forms, model="eyes")


def refusal(name: str, *turns: Turn, forms: MediaForms | None) -> SmgError:
    with pytest.raises(SmgError) as raised:
        model(name).render(ChatPrompt(turns), now=NOW, media=forms, model="eyes")
    return raised.value


def test_every_template_of_the_folder_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.jinja")} == set(NAMES)


ONE_PICTURE: Final = {
    "qwen2_5_vl": f"<|im_start|>user\nLook:{QWEN_SHOWN}What?<|im_end|>\n",
    "qwen3_vl": f"<|im_start|>user\nLook:{QWEN_SHOWN}What?<|im_end|>\n",
    "llava": "USER: <image>\nLook: What? ASSISTANT:",
    "llama4": "user<|header_end|>\n\nLook:<|image|>What?<|eot|>",
    "pixtral": "<s>[INST]Look:[IMG]What?[/INST]",
    "gemma3": "<start_of_turn>user\nLook:<start_of_image>What?<end_of_turn>\n",
    "phi4": "<|user|>Look:\n<|endoftext10|>\nWhat?<|end|>",
    "glm4v": "<|user|>\nLook:<|begin_of_image|><|image|><|end_of_image|>What?",
    "asks_for_urls": "<user>Look:<pic>What?",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_stands_where_the_template_puts_it(name: str) -> None:
    assert ONE_PICTURE[name] in shown(name, user("Look:", picture(1), "What?"))


@pytest.mark.parametrize("name", NAMES)
def test_each_picture_of_several_turns_has_one_anchor(name: str) -> None:
    turns = (
        user(picture(0), "What?"),
        Turn("assistant", "A boat."),
        user("And these?", picture(1), picture(2)),
    )
    assert shown(name, *turns).count(ANCHORS[name]) == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_may_be_nothing_but_a_picture(name: str) -> None:
    assert shown(name, user(picture(0))).count(ANCHORS[name]) == 1


def test_a_family_may_want_pictures_before_the_texts_of_a_turn() -> None:
    forms = MediaForms("<|endoftext10|>", "media_first")
    turn = user("a", picture(0), "b", picture(1))
    assert shown("phi4", turn, forms=forms) == (
        "<|user|><|endoftext10|>\n<|endoftext10|>\na\nb<|end|><|assistant|>"
    )


def test_a_looping_template_keeps_the_order_whatever_the_family_wants() -> None:
    forms = MediaForms(QWEN_ANCHOR, "media_first")
    assert f"Look:{QWEN_SHOWN}" in shown("qwen2_5_vl", user("Look:", picture(1)), forms=forms)


def test_a_template_without_pictures_gets_the_words_of_the_family() -> None:
    text = renderer(source("chatml")).render(
        ChatPrompt((user("See", picture(1)),)), now=NOW, media=QWEN
    )
    assert f"See\n{QWEN_SHOWN}<|im_end|>" in text


def _with_result(*parts: Part) -> tuple[Turn, ...]:
    call = ToolCall("abcde1234", "get_tide", "{}")
    return (
        Turn("user", "Look"),
        Turn("assistant", None, calls=(call,)),
        Turn("tool", parts, answers_call="abcde1234"),
    )


def test_a_result_of_a_tool_may_hold_a_picture() -> None:
    prompt = ChatPrompt(_with_result(TextPart("see"), picture(3)), tools=(TIDE,))
    text = model("qwen3_vl").render(prompt, now=NOW, media=QWEN)
    assert f"<tool_response>\nsee{QWEN_SHOWN}\n</tool_response>" in text


def test_pictures_of_results_are_told_in_the_order_of_the_calls() -> None:
    calls = (ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}"))
    turns = (
        user("Go", picture(0)),
        Turn("assistant", None, calls=calls),
        Turn("tool", (TextPart("second"), picture(1)), answers_call="b"),
        Turn("tool", (TextPart("first"), picture(2)), answers_call="a"),
    )
    text = model("qwen3_vl").render(ChatPrompt(turns, tools=(TIDE,)), now=NOW, media=QWEN)
    assert text.index("first") < text.index("second")
    assert ordered_media(turns) == [picture(0), picture(2), picture(1)]


def test_pictures_of_two_calls_with_one_id_are_refused() -> None:
    turns = (
        Turn("assistant", None, calls=(ToolCall("a", "f", "{}"), ToolCall("a", "g", "{}"))),
        Turn("tool", (picture(1),), answers_call="a"),
        Turn("tool", (picture(2),), answers_call="a"),
    )
    with pytest.raises(SmgError) as raised:
        ordered_media(turns)
    assert raised.value.where == picture(2).where


def test_pictures_that_a_template_leaves_out_are_refused() -> None:
    silent = "{% for m in messages %}{% if m.role == 'user' %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == 'image' %}<pic>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endif %}{% endfor %}"
    prompt = ChatPrompt((user("a", picture(0)), *_with_result(picture(7))))
    with pytest.raises(SmgError) as raised:
        renderer(silent).render(prompt, now=NOW, media=MediaForms("<pic>"), model="eyes")
    assert raised.value.code == "unsupported_parameter"
    assert (
        raised.value.message
        == "the chat template of the model 'eyes' shows only 1 of the 2 pictures"
    )


@pytest.mark.parametrize("name", NAMES)
def test_an_anchor_in_a_text_beside_a_picture_is_refused(name: str) -> None:
    forms = MediaForms(ANCHORS[name])
    found = refusal(name, user(picture(0), f"say {ANCHORS[name]} twice"), forms=forms)
    assert (found.kind, found.where) == (ErrorKind.INVALID_REQUEST, "messages")
    assert repr(ANCHORS[name]) in found.message


def test_an_anchor_made_of_two_parts_is_refused() -> None:
    turn = user(picture(0), "<|image", "_pad|>")
    assert refusal("qwen3_vl", turn, forms=QWEN).where == "messages"


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_sees_nothing_says_so_at_the_part(name: str) -> None:
    found = refusal(name, user("a", picture(1)), forms=None)
    assert (found.where, found.code) == (picture(1).where, "unsupported_parameter")
    assert found.message == "the model 'eyes' takes no pictures"


@pytest.mark.parametrize(
    ("kind", "words"), [("video", "videos"), ("audio", "sound"), ("file", "files")]
)
def test_a_kind_that_a_model_does_not_see_is_named(kind: MediaKind, words: str) -> None:
    found = refusal("qwen3_vl", user("a", picture(0), picture(1, kind)), forms=QWEN)
    assert found.where == picture(1).where
    assert found.message == f"the model 'eyes' takes no {words}"


def test_a_clip_is_a_part_for_a_template_that_loops() -> None:
    forms = MediaForms(QWEN_ANCHOR, kinds=("image", "video"))
    text = shown("qwen3_vl", user(picture(0, "video"), "a", picture(1)), forms=forms)
    assert f"<|vision_start|><|video_pad|><|vision_end|>a{QWEN_SHOWN}" in text
    assert "cannot show videos" in refusal("phi4", user(picture(0, "video")), forms=forms).message


VIDEO: Final = ClipMark("video", "<|video_pad|>", "<|vision_start|><|video_pad|><|vision_end|>")
SOUND: Final = ClipMark("audio", "<|AUDIO|>", "<|audio_bos|><|AUDIO|><|audio_eos|>")
ALL: Final = MediaForms(
    QWEN_ANCHOR, kinds=("image", "video", "audio"), literal=QWEN_SHOWN, clips=(VIDEO, SOUND)
)
HEARS: Final = (
    "{%- for message in messages %}{%- if message.content is string %}{{ message.content }}{%- else %}"
    "{%- for part in message.content %}{%- if part.type == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>"
    "{%- else %}{{ part.text }}{%- endif %}{%- endfor %}{%- endif %}{%- endfor %}"
)


@pytest.mark.parametrize("name", ["qwen2_5_vl", "qwen3_vl"])
def test_a_template_that_knows_videos_shows_them_and_others_get_the_words(name: str) -> None:
    turn = user("a", picture(1, "video"), picture(2), picture(3, "audio"), "b")
    text = shown(name, turn, forms=ALL)
    assert f"a{VIDEO.literal}{QWEN_SHOWN}{SOUND.literal}b" in text


def test_a_template_that_concatenates_gets_the_words_of_every_kind() -> None:
    turn = user("a", picture(1, "video"), "b", picture(2, "audio"))
    text = shown("phi4", turn, forms=ALL)
    assert f"a\n{VIDEO.literal}\nb\n{SOUND.literal}" in text


def test_a_model_that_only_hears_has_no_picture() -> None:
    forms = MediaForms("", kinds=("audio",), clips=(SOUND,))
    turn = user(picture(0, "audio"), "What is said?")
    text = renderer(HEARS).render(ChatPrompt((turn,)), now=NOW, media=forms, model="ears")
    assert text.startswith(f"{SOUND.literal}What is said?")
    found = refusal("qwen3_vl", user(picture(0)), forms=forms)
    assert found.message == "the model 'eyes' takes no pictures"


def test_the_mark_of_a_video_cannot_be_typed() -> None:
    for turn in (user("<|video_pad|>", picture(1, "video")), user("<|video_pad|>", picture(1))):
        found = refusal("qwen3_vl", turn, forms=ALL)
        assert (found.code, found.where) == ("invalid_value", "messages")
        assert "'<|video_pad|>' stands for a video" in found.message


def test_a_template_that_leaves_videos_out_is_refused_at_the_first() -> None:
    silent = (
        "{%- for message in messages %}{%- set first = loop.first %}{%- if message.content is string %}"
        "{{ message.content }}{%- else %}{%- for part in message.content %}"
        "{%- if part.type == 'video' and first %}"
        "<|video_pad|>{%- elif part.text %}{{ part.text }}{%- endif %}{%- endfor %}{%- endif %}{%- endfor %}"
    )
    turns = (user(picture(0, "video")), Turn("assistant", "a"), user(picture(1, "video")))
    with pytest.raises(SmgError, match="shows only 1 of the 2 videos") as raised:
        renderer(silent).render(ChatPrompt(turns), now=NOW, media=ALL, model="eyes")
    assert raised.value.where == picture(0).where


def test_a_conversation_whose_pictures_would_change_places_is_not_mended() -> None:
    alternating = (FOLDER / "pixtral.jinja").read_text(encoding="utf-8")
    seen = Turn("system", (picture(1),))
    turns = (user(picture(0)), Turn("assistant", "a"), seen, Turn("user", "b"))
    with pytest.raises(SmgError, match="Roles go user"):
        renderer(alternating).render(ChatPrompt(turns), now=NOW, media=MediaForms("[IMG]"))
    mended = (user(picture(0)), user("b", picture(1)))
    assert shown("pixtral", *mended).count("[IMG]") == 2


def test_a_prompt_with_a_picture_has_no_skeleton_and_does_not_spoil_that_of_texts() -> None:
    ours = model("qwen3_vl")
    plain = ChatPrompt((Turn("user", "Look"),))
    seen = ChatPrompt((user("Look", picture(1)),))
    expected = model("qwen3_vl").render(plain, now=NOW)
    for _ in range(8):
        assert QWEN_SHOWN in ours.render(seen, now=NOW, media=QWEN)
        assert ours.render(plain, now=NOW, media=QWEN) == expected
        assert ours.known(seen, now_ms=0) is None
    assert ours.known(plain, now_ms=0) == expected
    assert form_of(seen) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_conversation_of_texts_is_printed_as_before(name: str) -> None:
    prompt = ChatPrompt((Turn("user", "a"), Turn("assistant", "b"), user("c", "d")))
    ours = model(name)
    assert ours.render(prompt, now=NOW) == ours.render(
        prompt, now=NOW, media=MediaForms(ANCHORS[name])
    )


_PARTS: Final = st.lists(st.sampled_from(["word", "other ", ""]) | st.just(picture(0)), min_size=1)


@given(name=st.sampled_from(NAMES), asked=_PARTS, more=_PARTS)
def test_any_mixture_of_texts_and_pictures_has_an_anchor_for_each(
    name: str, asked: list[Part | str], more: list[Part | str]
) -> None:
    turns = (user(*asked), Turn("assistant", "Yes"), user(*more))
    text = _RENDERERS[name].render(
        ChatPrompt(turns), now=NOW, media=MediaForms(ANCHORS[name]), model="eyes"
    )
    assert text.count(ANCHORS[name]) == len(ordered_media(turns))


_RENDERERS: Final = {name: model(name) for name in NAMES}


def test_documents_beside_the_messages_leave_pictures_in_place() -> None:
    prompt = replace(ChatPrompt((user("a", picture(0)),)), documents=({"title": "T", "text": "x"},))
    assert model("qwen3_vl").render(prompt, now=NOW, media=QWEN).count(QWEN_ANCHOR) == 1


def test_a_conversation_of_texts_loads_nothing_for_pictures() -> None:
    script = """
import json, sys
from support.models.prompt_corpus import CHATS, NOW, renderer, source
ours = renderer(source("chatml"))
for name in ("one question", "parts", "a call"):
    ours.render(CHATS[name], now=NOW)
print(json.dumps(sorted(sys.modules)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=Path(__file__).parents[3],
    )
    loaded = set(json.loads(ran.stdout))
    assert "smg_node.prompts.messages" in loaded
    assert not {
        name for name in loaded if name.startswith("smg_node.media") or "media_forms" in name
    }
