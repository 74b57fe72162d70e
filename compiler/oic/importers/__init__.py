"""Checkpoints become graphs: one file a model family, and one way for all of them.

    imported = import_checkpoint("folder", "out")     # out/graph.oi, out/model.json, …

A family reads the configuration and the names of the weights and says what the model is, as data (`Decoder`); the
graph is written from that.  The same features give the same graph, whatever the family is called.
"""

from oic.importers.checkpoint import Checkpoint
from oic.importers.folder import Imported, import_checkpoint

__all__ = ["Checkpoint", "Imported", "import_checkpoint"]
