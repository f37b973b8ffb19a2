"""Stream: engine chunks to events: detokenizing, stop strings, parsing, framing. Pure."""
