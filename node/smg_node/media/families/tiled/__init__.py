"""Tiled families: pictures are cut into square tiles of a canvas, mostly with one tile of the whole beside them."""
