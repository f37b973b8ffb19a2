"""Telemetry of a node: metrics, traces, logs; alerts and dashboards made from them."""
