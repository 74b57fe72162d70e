"""From source text to a checked syntax tree, and on to the graph IR."""
