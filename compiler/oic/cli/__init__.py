"""The `oic` command, a file a subcommand: arguments in, exit status out."""

from oic.cli.main import main

__all__ = ["main"]
