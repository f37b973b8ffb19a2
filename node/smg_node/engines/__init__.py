"""The doors to inference engines: one normalised engine over every published contract."""
