"""Gateways: the processes under comparison, with their engines, and how each is started and
secured.
"""
