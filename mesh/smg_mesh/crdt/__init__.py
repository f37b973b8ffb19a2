"""CRDTs: state that merges in any order: documents, registers, tables, hints, clocks. Pure."""
