"""Pixels: encoded pictures to 8-bit RGB, resized and cut into the order that models want; cached, never the network."""
