"""Encoders: prompts of model families that ship a program in the place of a chat template. Pure."""
