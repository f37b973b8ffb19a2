"""Decoding of token ids to text, one id at a time, and stop strings. Pure."""
