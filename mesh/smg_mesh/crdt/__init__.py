"""State that merges in any order: documents, registers, tables, clocks. Pure."""
