"""Output of the configuration: help, effective configuration, reference page, start-up banner."""
