"""Text to syntax tree and back: grammar, recovery from errors, unparse, graph JSON."""

from oic.syntax import graph_json as graph_json  # gives `Graph` its `to_json` and `from_json`
