"""Text, token by token, from a decoder that was imported or written in the same shape.

    for token in oic.generate("folder", "Once upon a time", count=40):
        print(token.text, end="", flush=True)
"""

from oic.generation.generator import Generator, Token, generate
from oic.generation.sampling import Sampling

__all__ = ["Generator", "Sampling", "Token", "generate"]
