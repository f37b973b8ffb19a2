"""Write the real vocabulary as a model folder: `python tests/support/models/vocabulary_folder.py FOLDER`.

For `smg-chaos bench --tokenizer FOLDER` and `smg-chaos engine --tokenizer FOLDER`: Qwen's 151,646 tokens
with the simulated engine's own chat template.
"""

import json
import sys
from pathlib import Path

from smg_chaos.engine.scripts.corpus import CHAT_TEMPLATE


def folder_files() -> dict[str, bytes]:
    """Return the folder's files by name."""
    from support.models.vocabulary import qwen_bundle

    files = dict(qwen_bundle().files)
    config = json.loads(files["tokenizer_config.json"])
    config |= {"chat_template": CHAT_TEMPLATE, "tokenizer_class": "PreTrainedTokenizerFast"}
    files["tokenizer_config.json"] = json.dumps(config).encode()
    end_of_turn = json.loads(files["generation_config.json"])["eos_token_id"][0]
    model = {"model_type": "qwen2", "vocab_size": 151_936, "eos_token_id": end_of_turn}
    files["config.json"] = json.dumps(model).encode()
    return files


def main() -> None:
    """Write the folder named on the command line."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    # config.json comes last: a folder that has it is complete.
    for name, content in folder_files().items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
