"""Schema of the settings: declaration of a knob, table of all knobs, live settings, parser."""
