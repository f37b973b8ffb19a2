"""Prompts: turns of a conversation to prompt text, through each model's own chat template."""
