"""From turns to prompt text, through each model's own chat template."""
