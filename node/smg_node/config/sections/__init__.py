"""The knobs, one module a section."""
