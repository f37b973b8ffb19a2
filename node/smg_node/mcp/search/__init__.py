"""Search among tools that the prompt leaves out: BM25 over their words, regular expressions over their text; pure."""
