"""Writes how OpenCV reads the clips that are here: frames, frames a second, and a digest of the levels of all frames.

vLLM reads clips with it, in this way. Run by an interpreter that has it, with the folder of tests on the path:
`PYTHONPATH=tests python tests/support/media/programs/video_judge.py` (opencv-python-headless 5.0.0.93 made what is
there). It reads no AV1, so what is said of that clip comes from its making: 8 frames, 20 a second.
"""

import json
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import cv2
from cv2 import videoio_registry

CLIPS = Path(__file__).parents[1] / "clips"


def main() -> None:
    """Write `judged.json` beside the clips."""
    usable = [
        each
        for each in videoio_registry.getStreamBufferedBackends()
        if videoio_registry.hasBackend(each)
    ]
    told = {}
    for path in sorted(CLIPS.glob("*.*")):
        if path.suffix == ".json" or path.stem == "av1":
            continue
        told[path.name] = judged(cv2.VideoCapture(BytesIO(path.read_bytes()), usable[0], []))
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(found)}" for name, found in told.items())
    (CLIPS / "judged.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def judged(clip: Any) -> list[Any]:
    """Return what is in an opened clip."""
    said = [int(clip.get(cv2.CAP_PROP_FRAME_COUNT)), clip.get(cv2.CAP_PROP_FPS)]
    digest, shape = sha256(), None
    while True:
        there, frame = clip.read()
        if not there:
            return [*said, shape, digest.hexdigest()]
        shape = list(frame.shape)
        digest.update(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB).tobytes())


if __name__ == "__main__":
    main()
