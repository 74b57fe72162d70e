"""C compilers: what they are called with, what they make, its stack and code."""
