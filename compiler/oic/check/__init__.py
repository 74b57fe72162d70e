"""Everything about a graph that is refused before it is lowered: names, kinds, sizes, flow, the model's data."""
