"""Figures: measurements of processes (CPU, memory, instructions), and the rows and tables made of
them.
"""
