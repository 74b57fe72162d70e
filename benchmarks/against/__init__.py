"""Engines that the benchmark runs, a module each; every one runs in a process of its own (`worker`)."""


class Unsupported(Exception):
    """What an engine, or what is installed here, cannot do; the message says why."""
