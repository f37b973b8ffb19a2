"""What models print: text, reasoning and calls, as incremental machines."""
