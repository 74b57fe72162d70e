"""Proof of equality: the reference and the compiled library side by side, over many steps."""
