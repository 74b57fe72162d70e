"""Passes: IR to IR, one a file; `pipeline` is their order."""
