"""Generation: the vocabulary of one generation: request, events, pieces, answer, outcome."""
