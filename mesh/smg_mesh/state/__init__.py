"""What the nodes share, with types: workers, settings, sticky keys, load, verdicts, the audit log. Pure."""
