"""Every knob, declared once."""
