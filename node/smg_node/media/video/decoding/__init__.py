"""Decoding of video: a process of its own for each clip, which has memory and time within limits and nothing else."""
