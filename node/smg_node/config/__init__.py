"""Config: settings tree, addresses and worker URLs; every knob is declared once."""
