"""Grafana dashboards, declared in code and rendered to the JSON that Grafana imports."""
