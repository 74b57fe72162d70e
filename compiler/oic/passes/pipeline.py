"""The passes, in order, each with the reason for its position."""

from collections.abc import Callable
from dataclasses import dataclass

from oic.passes.broadcast import broadcast
from oic.passes.bufferize import bufferize
from oic.passes.compute_constants import compute_constants
from oic.passes.cse import cse
from oic.passes.dead_code import dead_code
from oic.passes.flatten_filters import flatten_filters
from oic.passes.fold import fold
from oic.passes.forward_state import forward_state
from oic.passes.fuse import fuse
from oic.passes.fuse_epilogues import fuse_epilogues
from oic.passes.fuse_products import fuse_products
from oic.passes.hoist_checks import hoist_checks
from oic.passes.join_products import join_products
from oic.passes.lower_cache import lower_cache
from oic.passes.materialize import materialize
from oic.passes.order_consumers import order_consumers
from oic.passes.own_parts import own_parts
from oic.passes.pack_weights import pack_weights
from oic.passes.plan_memory import plan_memory
from oic.passes.redundant_checks import redundant_checks, settle_checks
from oic.passes.schedule_checks import schedule_checks
from oic.passes.select_kernels import select_kernels
from oic.passes.select_members import select_members
from oic.passes.serialize import serialize
from oic.passes.share_angles import share_angles
from oic.passes.whole_products import whole_products


@dataclass(frozen=True)
class Step:
    """One pass of the pipeline: its name, what it is for here, the stage it leaves.

    takes   what of the settings of a compilation (`driver.Settings`) the pass takes, by name
    alone   it runs without threads only
    """

    name: str
    run: Callable[..., None]
    reason: str
    stage: str
    takes: tuple[str, ...] = ()
    alone: bool = False


PIPELINE: tuple[Step, ...] = (
    Step("select-members", select_members, "parts of constants that are members: before anything asks who reads them",
         "graph"),
    Step("whole-products", whole_products, "parts of constants are products' operands as the source has them: before "
         "anything is folded", "graph"),
    Step("fold", fold, "known integers and constants first: they decide shapes and branches", "graph"),
    Step("cse", cse, "equal reads and products before anything is lowered to many ops", "graph"),
    Step("compute-constants", compute_constants, "what only C may compute of constants: merged before, "
         "and known before anything is lowered", "graph", takes=("target", "computer")),
    Step("dead-code", dead_code, "what folding and merging left over", "graph"),
    Step("broadcast", broadcast, "explicit before fusion, which asks for equal shapes", "graph"),
    Step("lower-cache", lower_cache, "state becomes memory: from here on loads and stores", "indexed"),
    Step("forward-state", forward_state, "counters read after they were stepped become arithmetic, so that "
         "what is made of them can be folded and merged, and checks of them can move", "indexed"),
    Step("fold-indexed", fold, "checks of indices whose ranges are known", "indexed"),
    Step("cse-indexed", cse, "index arithmetic of neighbouring accesses", "indexed"),
    Step("hoist-checks", hoist_checks, "refusals before effects, so that a refused step changes nothing",
         "indexed"),
    Step("serialize", serialize, "without threads: from here on straight code; after the one pass that moves "
         "refusals, so that these are the same with threads", "indexed", alone=True),
    Step("fold-checks", fold, "what the hoisted checks turn out to know", "indexed"),
    Step("cse-checks", cse, "one check for all accesses alike", "indexed"),
    Step("redundant-checks", redundant_checks, "checks that earlier ones imply", "indexed"),
    Step("dead-code-indexed", dead_code, "unused counts and arithmetic", "indexed"),
    Step("order-consumers", order_consumers, "with threads: what must not run at once, seen best with the "
         "fewest checks and effects", "indexed"),
    Step("schedule-checks", schedule_checks, "checks at the front: nothing is computed in vain, chains may fuse, and "
         "what is stored may be computed in its place", "indexed"),
    Step("share-angles", share_angles, "once loops are as they stay, and positions are known before them", "indexed"),
    Step("fuse", fuse, "after checks have moved: an effect in between bars fusion", "indexed"),
    Step("fuse-epilogues", fuse_epilogues, "what is done to the results of products alone, as they are stored; before "
         "kernels are chosen, of which some can", "indexed"),
    Step("own-parts", own_parts, "matrices and filters as products take them, before these are flattened and kernels "
         "are chosen, which may read them in an order of their own", "indexed", takes=("target",)),
    Step("flatten-filters", flatten_filters, "matrices, before kernels are chosen that take them", "indexed",
         takes=("target",)),
    Step("select-kernels", select_kernels, "once it is known who reads a constant; what comes after asks the "
         "kernel", "indexed", takes=("target", "threads")),
    Step("join-products", join_products, "once it is known which kernels read constants, and those that read "
         "results", "indexed", takes=("target", "threads")),
    Step("pack-weights", pack_weights, "encodings before layouts", "indexed"),
    Step("materialize", materialize, "copies that layouts and state make necessary, before memory", "indexed"),
    Step("fuse-products", fuse_products, "kernels are chosen, of which some hand on their results, and operands are as "
         "these take them; before what is not stored gets memory", "indexed"),
    Step("bufferize", bufferize, "whose memory each value has: sharing before sizes", "indexed"),
    Step("settle-checks", settle_checks, "nothing moves any more: what is left to refuse is what C refuses", "indexed"),
    Step("plan-memory", plan_memory, "offsets last: lifetimes are final", "planned",
         takes=("target", "reuse")),
)  # fmt: skip
