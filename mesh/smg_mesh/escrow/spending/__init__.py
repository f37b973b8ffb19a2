"""Spending."""
