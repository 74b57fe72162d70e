"""The version of this package, as `oic` and the command say it; `pyproject.toml` has the same."""

__version__ = "0.1.0"
