"""The files of a generated library: written, published at once, compiled, loaded."""
