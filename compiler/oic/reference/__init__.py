"""The meaning of every IR stage, in NumPy."""
