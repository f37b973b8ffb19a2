"""Middleware: what surrounds every route: authorization, caller context, errors, drain, access log."""
