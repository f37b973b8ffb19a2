"""Rights: the driver of escrow: its clock, its log on disk, its letters, and requests that wait."""
