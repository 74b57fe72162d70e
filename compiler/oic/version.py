"""The version of this package, in the one place that both `oic` and the command read."""

__version__ = "0.1.0"
