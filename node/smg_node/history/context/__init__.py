"""Context: history read into a request: loading, truncation, prompt length, sealed content."""
