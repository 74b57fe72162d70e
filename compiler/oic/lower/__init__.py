"""Checked tree to GRAPH: one function an entry, every shape and dtype decided."""
