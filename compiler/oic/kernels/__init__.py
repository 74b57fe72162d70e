"""Kernels as data: what computes an operator, on which machine, from which encoding of its weights."""
