"""Selection of the formats that a model prints, from settings, worker, checkpoint, template and
name.
"""
