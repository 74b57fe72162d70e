"""Engines that the benchmark runs, a module each; every one runs in a process of its own (`worker`)."""
