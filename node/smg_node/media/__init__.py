"""Media: pictures for engines: where they come from, their pixels, their tensors and their place in the prompt."""
