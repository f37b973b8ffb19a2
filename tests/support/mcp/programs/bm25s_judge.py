"""Judge of searches in words: bm25s finds texts for questions, both read from stdin as JSON.

Run by the interpreter of the judges. Prints for each question the places of the texts it finds, best first.
"""

import json
import sys

import bm25s


def main() -> None:
    """Answer one request of stdin: `texts`, `questions`, `limit`, and whether they are `split` into words already."""
    asked = json.load(sys.stdin)
    pattern = r"\S+" if asked["split"] else r"(?u)\b\w\w+\b"

    def tokens(texts: list[str]) -> list[list[str]]:
        split: list[list[str]] = bm25s.tokenize(
            texts, stopwords="en", token_pattern=pattern, return_ids=False, show_progress=False
        )
        return split

    index = bm25s.BM25(k1=1.2, b=0.75)
    index.index(tokens(asked["texts"]), show_progress=False)
    limit = asked["limit"]
    found = []
    for question in tokens(asked["questions"]):
        places, scores = index.retrieve([question], k=limit, show_progress=False)
        pairs = zip(places[0].tolist(), scores[0].tolist(), strict=True)
        found.append([place for place, score in pairs if score > 0])
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
