"""Prometheus rules: alerts and recordings, declared in code and rendered to rule files."""
