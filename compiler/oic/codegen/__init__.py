"""PLANNED to C: statements, expressions, the data that templates arrange, and the files."""
