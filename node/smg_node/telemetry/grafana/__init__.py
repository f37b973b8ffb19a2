"""Grafana."""
