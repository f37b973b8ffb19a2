"""Tool-call formats: one module a family of models, each with `FORMATS`."""
