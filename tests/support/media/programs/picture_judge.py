"""Published image processors of transformers as judges: runs in an environment of its own, never in the project's.

Reads from standard input a JSON list of cases: `family`, `processor` (its numbers), `pictures` (width, height and seed
of a pattern each), and `values`, the number of first pictures whose values are wanted, which go to FOLDER as .npy files of
float32. Writes a JSON list of what each picture became: shape, grid, number of ids, `text` in the prompt where the judge
writes it (runs of tokens), digest of the values, file; or `refused`, and why.
With torchvision beside it the judges are those that engines use; without, their twins made with Pillow. Judges that only
vLLM has need vLLM's own environment.
"""

import hashlib
import importlib
import importlib.util
import itertools
import json
import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image

warnings.simplefilter("ignore")
PIL_TWIN = "" if importlib.util.find_spec("torchvision") else "Pil"

Size = tuple[int, int]
Told = tuple[list[int] | None, int]
Runs = list[tuple[str, int]]

MODULES = {
    "qwen2_5_vl": ("qwen2_vl", "Qwen2VLImageProcessor"),
    "qwen3_vl": ("qwen2_vl", "Qwen2VLImageProcessor"),
    "glm4v": ("glm4v", "Glm4vImageProcessor"),
    "kimi_k25": ("kimi_k25", "Kimi_K25ImageProcessor"),
    "llava": ("clip", "CLIPImageProcessor"),
    "llava_next": ("llava_next", "LlavaNextImageProcessor"),
    "llama4": ("llama4", "Llama4ImageProcessor"),
    "pixtral": ("pixtral", "PixtralImageProcessor"),
    "mistral3": ("pixtral", "PixtralImageProcessor"),
    "phi4mm": ("phi4_multimodal", "Phi4MultimodalImageProcessor"),
    "gemma3": ("gemma3", "Gemma3ImageProcessor"),
    "gemma4": ("gemma4", "Gemma4ImageProcessor"),
    "internvl": ("got_ocr2", "GotOcr2ImageProcessor"),
    "llava_next_siglip": ("llava_next", "LlavaNextImageProcessor"),
    "dots_ocr": ("qwen2_vl", "Qwen2VLImageProcessor"),
    "glm_ocr": ("glm46v", "Glm46VImageProcessor"),
    "llava_siglip": ("siglip", "SiglipImageProcessor"),
    "gemma3n": ("siglip", "SiglipImageProcessor"),
    "llava_onevision": ("llava_onevision", "LlavaOnevisionImageProcessor"),
    "idefics3": ("idefics3", "Idefics3ImageProcessor"),
    "smolvlm": ("smolvlm", "SmolVLMImageProcessor"),
    "cohere2_vision": ("cohere2_vision", "Cohere2VisionImageProcessor"),
}
ENGINE_ONLY = ("internvl_chat", "deepseek_vl2", "deepseek_ocr", "deepseek_ocr2")
TORCH_ONLY = ("kimi_k25", "llama4", "phi4mm", "cohere2_vision", *ENGINE_ONLY)
PLACE = 9
"""Id of a picture's place, of judges that ask for it."""
PIECE = re.compile(r"<[^<>]*>|\n+|[^<]")


def model_class(model: str, kind: str, name: str) -> Any:
    """Return a class of transformers."""
    return getattr(importlib.import_module(f"transformers.models.{model}.{kind}_{model}"), name)


def image_processor(family: str, numbers: dict[str, Any]) -> Any:
    """Return the judge of a family."""
    if family in ENGINE_ONLY:
        return engine_processor(family, numbers)
    model, name = MODULES[family]
    kind = "image_processing_pil" if PIL_TWIN else "image_processing"
    return model_class(model, kind, name + PIL_TWIN)(**numbers)


def engine_processor(family: str, numbers: dict[str, Any]) -> Any:
    """Return a judge that only vLLM has."""
    room = "vllm.transformers_utils.processors"
    if family == "internvl_chat":
        return importlib.import_module(f"{room}.internvl").InternVLImageProcessor(**numbers)
    if family == "deepseek_vl2":
        made = importlib.import_module(f"{room}.deepseek_vl2").DeepseekVLV2Processor
    else:
        made = importlib.import_module(f"{room}.deepseek_ocr").DeepseekOCRProcessor
        sizes = {"deepseek_ocr": (640, "v1"), "deepseek_ocr2": (768, "v2")}
        numbers["image_size"], numbers["strategy"] = sizes[family]
    # Only how pictures are counted and made is asked for, and no text is encoded but that of their places.
    made.__init__ = without_base(made)
    return Deepseek(made(Tokenizer(), **numbers))


def without_base(made: Any) -> Any:
    """Return the constructor of a processor that takes any tokenizer: what transformers checks is left out."""
    from transformers.processing_utils import ProcessorMixin

    kept = made.__init__

    def built(self: Any, *told: Any, **named: Any) -> None:
        base, ProcessorMixin.__init__ = ProcessorMixin.__init__, lambda *_, **__: None
        try:
            kept(self, *told, **named)
        finally:
            ProcessorMixin.__init__ = base

    return built


class Tokenizer:
    """A tokenizer of three tokens, for processors that encode what stands between pictures."""

    pad_token = "<pad>"
    bos_token_id, eos_token_id, pad_token_id = 1, 2, 3

    def __init__(self) -> None:
        self.vocab = {"<image>": PLACE}

    def add_special_tokens(self, _told: Any) -> None:
        """Take more tokens, which no picture needs."""

    def encode(self, _text: str, *, add_special_tokens: bool) -> list[int]:
        """Return no token, as of an empty text."""
        return []


class Deepseek:
    """Processor of a DeepSeek model for one picture."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def __call__(self, *, images: list[Any], return_tensors: str) -> Any:
        told = {"text": "<image>", "prompt": "<image>", "images": images}
        return self.made(**told)


def runs(text: str) -> Runs:
    """Return a text of tokens as runs of equal ones."""
    return [(piece, len(list(same))) for piece, same in itertools.groupby(PIECE.findall(text))]


def merged(out: Any, _made: Any, _size: Size) -> Told:
    """Return grid and ids of the Qwen group."""
    grid = [int(n) for n in np.asarray(out["image_grid_thw"])[0]]
    return grid, grid[0] * grid[1] * grid[2] // 4


def llava(out: Any, _made: Any, _size: Size) -> Told:
    """Return grid and ids of LLaVA."""
    return [24, 24], 576


def llava_next(side: int, class_features: int) -> Any:
    """Return what tells ids of LLaVA-NeXT, by its processor; features of the class are counted and left out."""

    def told(_out: Any, made: Any, size: Size) -> Told:
        processor = model_class("llava_next", "processing", "LlavaNextProcessor")
        me = SimpleNamespace(
            image_processor=made, patch_size=14, num_additional_image_tokens=class_features
        )
        me._get_unpadded_features = lambda *told: processor._get_unpadded_features(me, *told)
        width, height = size
        features = processor._get_number_of_features(me, height, width, side, side)
        return None, features - class_features

    return told


def llama4(out: Any, _made: Any, _size: Size) -> Told:
    """Return grid and ids of Llama 4, by its processor."""
    processor = model_class("llama4", "processing", "Llama4Processor")
    grid = [int(n) for n in out["aspect_ratios"][0]]
    return grid, processor._prompt_split_image(None, grid, 144).count("<|")


def pixtral(patch: int) -> Any:
    """Return what tells grid and ids of a model with a Pixtral encoder; its own processor is only there with torch."""

    def told(out: Any, _made: Any, _size: Size) -> Told:
        height, width = (int(n) for n in np.asarray(out["image_sizes"])[0])
        rows, columns = height // patch, width // patch
        return [rows, columns], rows * (columns + 1)

    return told


def phi4(out: Any, _made: Any, _size: Size) -> Told:
    """Return grid and ids of Phi-4."""
    height, width = (int(n) for n in out["image_sizes"][0])
    return [height // 448, width // 448], int(out["num_img_tokens"][0])


def gemma3(out: Any, _made: Any, _size: Size) -> Told:
    """Return ids of Gemma 3, newlines and marks included."""
    return None, 256 + 4


def gemma4(out: Any, _made: Any, _size: Size) -> Told:
    """Return grid and ids of Gemma 4."""
    places = np.asarray(out["image_position_ids"])[0]
    grid = [int(places[:, 1].max()) + 1, int(places[:, 0].max()) + 1]
    return grid, int(np.asarray(out["num_soft_tokens_per_image"])[0]) + 2


def internvl(out: Any, _made: Any, _size: Size) -> Told:
    """Return ids of InternVL."""
    return None, int(np.asarray(out["num_patches"])[0]) * 256 + 2


def llava_siglip(out: Any, _made: Any, _size: Size) -> Told:
    """Return grid and ids of LLaVA with SigLIP."""
    return [27, 27], 729


def llava_onevision(_out: Any, made: Any, size: Size) -> Told:
    """Return ids of LLaVA-OneVision, by its processor."""
    processor = model_class("llava_onevision", "processing", "LlavaOnevisionProcessor")
    me = SimpleNamespace(
        image_processor=made, num_image_tokens=729, vision_aspect_ratio="anyres_max_9"
    )
    me._get_unpadded_features = lambda *told: processor._get_unpadded_features(me, *told)
    width, height = size
    return None, processor._get_number_of_features(me, height, width, 384, 384)


def idefics3(features: int) -> Any:
    """Return what tells the prompt of Idefics 3 and SmolVLM, by their processors."""

    def told(out: Any, made: Any, _size: Size) -> str:
        kind = "smolvlm" if type(made).__name__.startswith("SmolVLM") else "idefics3"
        name = {"smolvlm": "SmolVLMProcessor", "idefics3": "Idefics3Processor"}[kind]
        me = SimpleNamespace(
            fake_image_token="<fake_token_around_image>",
            image_token="<image>",
            global_image_tag="<global-img>",
            global_image_token="<global-img>",
            image_seq_len=features,
        )
        return str(model_class(kind, "processing", name).replace_image_token(me, out, 0))

    return told


def cohere2_vision(out: Any, made: Any, _size: Size) -> str:
    """Return the prompt of Cohere 2 Vision, by its processor."""
    me = SimpleNamespace(
        patch_size=made.patch_size,
        image_token="<|IMG_PATCH|>",
        img_line_break_token="<|IMG_LINE_BREAK|>",
        boi_token="<|START_OF_IMG|>",
        eoi_token="<|END_OF_IMG|>",
    )
    processor = model_class("cohere2_vision", "processing", "Cohere2VisionProcessor")
    return str(processor.replace_image_token(me, out, 0))


def internvl_chat(_out: Any, made: Any, size: Size) -> str:
    """Return the prompt of InternVL's own form, by vLLM's processor."""
    name = "vllm.transformers_utils.processors.internvl"
    processor = importlib.import_module(name).InternVLProcessor
    me = SimpleNamespace(image_processor=made, image_seq_length=256)
    me.resolve_target_ratios = lambda **told: processor.resolve_target_ratios(me, **told)
    features = int(processor.get_num_image_tokens(me, image_width=size[0], image_height=size[1]))
    return "<img>" + "<IMG_CONTEXT>" * features + "</img>"


def deepseek(out: Any, _made: Any, _size: Size) -> str:
    """Return the prompt of a DeepSeek model, by vLLM's processor."""
    return "<image>" * int((out["input_ids"] == PLACE).sum())


TELLERS = {
    "qwen2_5_vl": merged,
    "qwen3_vl": merged,
    "glm4v": merged,
    "kimi_k25": merged,
    "llava": llava,
    "llava_next": llava_next(336, 1),
    "llava_next_siglip": llava_next(384, 0),
    "dots_ocr": merged,
    "glm_ocr": merged,
    "llama4": llama4,
    "pixtral": pixtral(16),
    "mistral3": pixtral(28),
    "phi4mm": phi4,
    "gemma3": gemma3,
    "gemma4": gemma4,
    "internvl": internvl,
    "llava_siglip": llava_siglip,
    "gemma3n": gemma3,
    "llava_onevision": llava_onevision,
    "idefics3": idefics3(169),
    "smolvlm": idefics3(81),
    "cohere2_vision": cohere2_vision,
    "internvl_chat": internvl_chat,
    "deepseek_vl2": deepseek,
    "deepseek_ocr": deepseek,
    "deepseek_ocr2": deepseek,
}
CALLED_WITH = {"idefics3": {"return_row_col_info": True}, "smolvlm": {"return_row_col_info": True}}
MAIN = {"phi4mm": "image_pixel_values", "internvl_chat": "pixel_values_flat"}


def pattern(width: int, height: int, seed: int) -> Any:
    """Return the levels of a case's picture, by whole numbers only: smooth in a corner, noise in the other."""
    y, x = np.mgrid[0:height, 0:width].astype(np.int64)
    planes = [(3 * x * x + 5 * y * y + (c + 1) * x * y + 97 * seed) // 8 % 256 for c in range(3)]
    return np.ascontiguousarray(np.stack(planes, axis=2).astype(np.uint8))


def floats(family: str, out: Any) -> Any:
    """Return the main tensor of one picture as float32."""
    values = out[MAIN.get(family, "pixel_values")]
    if isinstance(values, list):
        values = values[0]
    if hasattr(values, "detach"):
        values = values.detach().float().numpy()
    return np.ascontiguousarray(values, dtype=np.float32)


def crops_of(out: Any) -> dict[str, Any] | None:
    """Return shape and digest of the tiles of a picture that are a tensor of their own; None where there is no such."""
    if "images_crop" not in out:
        return None
    crops = out["images_crop"].numpy().astype(np.float32)
    return {"shape": list(crops.shape), "digest": hashlib.sha256(crops.tobytes()).hexdigest()}


def judged(case: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Return what the pictures of a case become."""
    family = case["family"]
    made = image_processor(family, case["processor"])
    # The whole crop of Phi-4 is made of floats, whose last bits are nobody's word.
    skipped = 1 if family == "phi4mm" else 0
    found: list[dict[str, Any]] = []
    for at, (width, height, seed) in enumerate(case["pictures"]):
        tensors = "np" if PIL_TWIN else "pt"
        picture = Image.fromarray(pattern(width, height, seed))
        try:
            out = made(images=[picture], return_tensors=tensors, **CALLED_WITH.get(family, {}))
        except ValueError as error:
            found.append({"size": [width, height], "refused": str(error)})
            continue
        values = floats(family, out)
        teller = TELLERS[family](out, made, (width, height))
        text = teller if isinstance(teller, str) else None
        grid, ids = (None, len(PIECE.findall(text))) if isinstance(text, str) else teller
        told: dict[str, Any] = {
            "size": [width, height],
            "shape": list(values.shape),
            "grid": grid,
            "ids": ids,
            "text": None if text is None else runs(text),
            "crops": crops_of(out),
            "digest": hashlib.sha256(values[:, skipped:].tobytes()).hexdigest(),
        }
        if at < case["values"]:
            told["file"] = str(folder / f"{family}-{at}.npy")
            np.save(told["file"], values)
        found.append(told)
    return found


def main() -> None:
    """Judge what stands in standard input."""
    folder = Path(sys.argv[1])
    cases = json.load(sys.stdin)
    told = {
        case["family"]: judged(case, folder)
        for case in cases
        if not (PIL_TWIN and case["family"] in TORCH_ONLY)
        and not (case["family"] in ENGINE_ONLY and not importlib.util.find_spec("vllm"))
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
