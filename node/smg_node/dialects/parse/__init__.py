"""Parse: bodies of the API that runs parsers on a given text."""
