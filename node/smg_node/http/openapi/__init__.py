"""OpenAPI: the machine-readable description of the HTTP API, with schemas, examples and pages."""
