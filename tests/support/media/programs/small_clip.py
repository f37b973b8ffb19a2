"""Writes a video of a second or two, of coloured clouds that move, as MP4: `python small_clip.py FILE SEED FRAMES`.

Run by the interpreter of an engine's environment, whose OpenCV is what decodes it again.
"""

import sys
from pathlib import Path

import cv2
import numpy as np

WIDTH, HEIGHT, A_SECOND = 112, 84, 4


def main(file: Path, seed: int, frames: int) -> None:
    """Write the video."""
    chance = np.random.default_rng(seed)
    clouds = chance.integers(0, 256, (HEIGHT // 8 + 4, WIDTH // 8 + frames, 3), dtype=np.uint8)
    large = cv2.resize(clouds, None, fx=8, fy=8, interpolation=cv2.INTER_CUBIC)
    written = cv2.VideoWriter(str(file), cv2.VideoWriter_fourcc(*"mp4v"), A_SECOND, (WIDTH, HEIGHT))
    if not written.isOpened():
        raise SystemExit("this OpenCV writes no MP4")
    for at in range(frames):
        written.write(np.ascontiguousarray(large[:HEIGHT, 8 * at : 8 * at + WIDTH]))
    written.release()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
