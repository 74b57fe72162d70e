"""The worst-case stack of a function, from what the compiler says of its own output.

    decode.su   frames, by -fstack-usage           decode_step  112 + oic_dots 1696 + ... = 3,504 bytes
    decode.s    calls, by -S of the same call   =>               and what memcpy, sqrtf need, which no
                                                                 compiler that only calls them knows

Two things that `-fstack-usage` leaves out are read from the instructions of x86: what is lost where a
frame is moved to a multiple of its alignment (gcc adds too much or too little, clang nothing), and what
lies below the stack pointer in a function that calls nothing (the red zone); clang also leaves out the
return address.  On other machines frames mostly start aligned; where one does not, what may be lost is added.

Work that is divided, and results of a product that are handed on, are calls by pointer.  The callee may be any function
whose address a caller on the path has taken; if none has, any whose address is taken at all, since callers of the API
give none; but never one that is on the path by its address.  A caller's frame is counted as staying during every call.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache

THREAD = "oic_pool_thread"  # what threads of a pool begin with: started, not called


class UnknownStack(Exception):
    """The stack has no bound that can be known; the message says why."""


@dataclass(frozen=True)
class StackUse:
    """The most that one function needs, its callees included, at any alignment of the caller's stack.

    nbytes      from the caller's stack pointer down, return address included
    externals   functions of other libraries that it reaches; the most that one of them needs comes on top
    path        the calls that need the most, itself first
    """

    function: str
    nbytes: int
    externals: tuple[str, ...]
    path: tuple[str, ...]


@dataclass
class AssemblyFunction:
    """One function of the assembly.

    nbytes      of its own frame, return address included
    below       bytes it uses below its stack pointer
    calls       functions of the assembly, `externals` others
    addresses   functions whose address it takes
    pointers    it calls functions by their address
    jumps       it jumps to addresses: of a table in it, or of a function
    """

    name: str
    nbytes: int
    below: int = 0
    calls: set[str] = field(default_factory=set)
    externals: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)
    pointers: bool = False
    jumps: bool = False


CallGraph = dict[str, AssemblyFunction]
Names = frozenset[str]

# What compilers define for machines whose calls and stack pointers are found below.
MACHINES = ("__x86_64__", "__i386__", "__arm__", "__aarch64__", "__riscv")


def check_machine(macros: Collection[str]) -> None:
    """Raise UnknownStack unless a compiler with these macros writes assembly that is understood here.

    A call that is not found would make a figure too small, and no figure is better than a wrong one.
    """
    if not any(name in macros for name in MACHINES):
        raise UnknownStack("oic does not read the assembly of this machine")


def worst(graph: CallGraph, function: str) -> StackUse:
    """The worst case of a function.  Raises UnknownStack: recursion."""
    taken = frozenset(a for frame in graph.values() for a in frame.addresses) - {THREAD}
    none: Names = frozenset()
    known: dict[tuple[str, Names, Names], tuple[int, tuple[str, ...]]] = {}
    reached: set[str] = set()

    def most(name: str, given: Names, called: Names, way: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        """Bytes and path of a function; on the way to it addresses were taken, and functions called by theirs."""
        if name in way:
            raise UnknownStack("recursion: " + " calls ".join((*way[way.index(name) :], name)))
        if (name, given, called) not in known:
            frame = graph[name]
            reached.update(frame.externals)
            found = given | (frame.addresses - {THREAD})
            next_ = [most(callee, found, called, (*way, name)) for callee in sorted(frame.calls)]
            if frame.pointers or (frame.jumps and found):
                tasks = sorted(found - called or taken - called)
                next_ += [most(task, found, called | {task}, (*way, name)) for task in tasks]
            deepest, path = max(next_, key=lambda n: n[0], default=(0, ()))
            nbytes = frame.nbytes + max(frame.below, deepest)
            known[name, given, called] = nbytes, (name, *(path if deepest > frame.below else ()))
        return known[name, given, called]

    nbytes, path = most(function, taken if function == THREAD else none, none, ())
    return StackUse(function, nbytes, tuple(sorted(reached)), path)


_LABEL = re.compile(r"([A-Za-z_.$][\w.$]*):")
_ALIAS = re.compile(r"^\s*\.set\s+([\w.$]+),\s*([\w.$]+)", re.MULTILINE)
_TYPE = re.compile(r"\.type\s+([\w.$]+)\s*,\s*[@%]function")
_SYMBOL = re.compile(r"(?<![%\w.$@])\$?([A-Za-z_.][\w.$]*)")
_DATA = re.compile(r"\.(?:word|long|quad|xword|dword|[248]byte)\b(.*)")
_TARGET = re.compile(r"\*?([A-Za-z_][\w.$]*)(?:@\w+|\(PLT\))?(?:\(%rip\))?")
_REGISTER = re.compile(r"[rxwast]\d+|lr|sp|pc|ip|fp|sl|sb|ra|gp|tp")
_COMMENT = re.compile(r"\s#|\s@ |//|/\*|;")
_PREFIXES = ("notrack", "bnd", "rep", "lock")


def read(usage: str, assembly: str) -> CallGraph:
    """The functions of one file compiled with `-fstack-usage -S`, by their names in the assembly.

    usage   lines `file:line:column:name<tab>bytes<tab>kind`, in the order of the assembly
    Raises UnknownStack: a frame whose size changes as it runs, or texts that are not of one compilation.
    """
    reported = []
    for line in usage.splitlines():
        place, size, kind = line.split("\t")
        name = place.rpartition(":")[2]
        if kind == "dynamic":
            raise UnknownStack(f"the frame of {name} changes its size as it runs")
        reported.append((name, int(size), "bounded" in kind))
    bodies = _bodies(assembly, [name for name, _, _ in reported])
    graph: CallGraph = {}
    aliases = {a: b for a, b in _ALIAS.findall(assembly) if b in bodies}
    data = _addresses_in_data(assembly, {*bodies, *aliases})
    for (name, body), (_, nbytes, bounded) in zip(bodies.items(), reported, strict=True):
        text = "\n".join(body)
        down, align = _x86(body, 4 if "%esp" in text else 8) if _X86.search(text) else (0, 0)
        # gcc counts the whole alignment in frames it calls bounded, which is more than can be lost.
        least = nbytes - align if bounded else nbytes + _lost_elsewhere(text)
        graph[name] = AssemblyFunction(name, max(least, down), _below(body))
        _edges(graph[name], body, {*bodies, *aliases}, data)
    return graph | {alias: graph[name] for alias, name in aliases.items()}


def _bodies(assembly: str, names: list[str]) -> dict[str, list[str]]:
    """The instructions and data of every function, by label; parts split off (`f.cold`) are its own."""
    typed = set(_TYPE.findall(assembly))
    bodies: dict[str, list[str]] = {}
    now: list[str] | None = None
    for line in assembly.splitlines():
        if match := _LABEL.match(line):
            label = match[1]
            # Where functions have no type (Mach-O), it is the label of the next one that is reported.
            if label in typed or (not typed and [label.removeprefix("_")] == names[len(bodies) :][:1]):
                now = bodies.setdefault(label.partition(".cold")[0], [])
            elif not label.startswith((".", "L", "$")):
                now = None  # data with a name
            elif now is not None:
                now.append(label + ":")
        elif now is not None:
            now.append(line.strip())
    if [_plain(label) for label in bodies] != [_plain(name) for name in names]:
        raise UnknownStack("the compiler's stack usage and its assembly name different functions")
    return bodies


def _plain(name: str) -> str:
    """What a function is called in C."""
    return name.partition(".")[0].lstrip("_")


def _addresses_in_data(assembly: str, functions: set[str]) -> dict[str, set[str]]:
    """Functions that data names, by the label of the data."""
    found: dict[str, set[str]] = {}
    label = ""
    for line in assembly.splitlines():
        if match := _LABEL.match(line):
            label = match[1]
        elif match := _DATA.match(line.strip()):
            if named := functions & set(_SYMBOL.findall(match[1])):
                found.setdefault(label, set()).update(named)
    return found


def _edges(frame: AssemblyFunction, body: list[str], functions: set[str], data: dict[str, set[str]]) -> None:
    """What a function calls, jumps to, and takes the address of."""
    for line in body:
        mnemonic, operands = _instruction(line)
        if not mnemonic:
            continue
        called = mnemonic.startswith(("call", "bl", "jal", "tail"))
        leaves = called or mnemonic.startswith("j") or (mnemonic[0] == "b" and mnemonic != "bti")
        target = _TARGET.fullmatch(operands)
        if leaves and target and not _REGISTER.fullmatch(target[1]):
            name = target[1]
            if name in functions:
                frame.calls.add(name)
            elif name[:1] != "L" and name.partition(".cold")[0] != frame.name:
                frame.externals.add(name.removeprefix("_") if frame.name.startswith("_") else name)
        elif leaves and (operands.startswith("*") or (target and target[1] not in ("lr", "ra"))):
            frame.pointers |= called
            frame.jumps |= not called
        symbols = set(_SYMBOL.findall(operands))
        if not (leaves and target):
            frame.addresses |= symbols & functions
            frame.addresses.update(*(data[s] for s in symbols & data.keys()))


@lru_cache(1 << 16)  # each is asked for by all that look at a body
def _instruction(line: str) -> tuple[str, str]:
    """Mnemonic and operands; empty for labels, directives and comments."""
    if not line or line[0] in ".#/@;" or line.endswith(":"):
        return "", ""
    code = _COMMENT.split(line, maxsplit=1)[0].strip()
    mnemonic, _, operands = code.replace("\t", " ").partition(" ")
    if mnemonic in _PREFIXES:
        mnemonic, _, operands = operands.strip().partition(" ")
    return mnemonic, operands.strip()


_SUB = re.compile(r"\$(-?\d+), ?%[re]sp")
_LEA = re.compile(r"(-?\d*)\(%[re]sp\), ?%[re]sp")
_PROBE = re.compile(r"-(\d+)\(%[re]sp\), ?%r?\w+")
_BELOW = re.compile(r"(?<!\w)-(\d+)\(%rsp|\[sp, #-(\d+)\](?!!)")
_X86 = re.compile(r"%[re]sp|^(?:ret[ql]?|jmp)\b", re.MULTILINE)
_MOVED = re.compile(
    r"^and\s+sp, ?\w+, ?#(?P<mask>-?(?:0x)?[0-9a-f]+)"  # AArch64; below, ARM
    r"|^bfc\s+sp, ?#0, ?#(?P<bits>\d+)"
    r"|^(?:bfc\s+(?P<a>r\d+), ?#0, ?#|lsls?\s+(?P<b>r\d+), ?(?P=b), ?#)(?P<few>\d+).*\n"
    r"mov\s+sp, ?(?:(?P=a)|(?P=b))\b",
    re.MULTILINE,
)


def _below(body: list[str]) -> int:
    """The furthest access of a function below its stack pointer."""
    found = (match for line in body for match in _BELOW.findall(_instruction(line)[1]))
    return max((int(n or 0) for match in found for n in match), default=0)


def _lost_elsewhere(text: str) -> int:
    """Bytes to add to what is reported where the frame of another machine than x86 is moved."""
    lost = 0
    for match in _MOVED.finditer(text):
        bits = match["bits"] or match["few"]
        lost = max(lost, 1 << int(bits) if bits else -int(match["mask"], 0) & 0xFFF)
    return lost


def _x86(body: list[str], word: int) -> tuple[int, int]:
    """How far down the stack pointer goes from that of the caller, and what the frame is moved to a multiple of, or 0.

    Pushes and subtractions are followed in the order of the text.  Prologues are straight; after a return the code
    goes on where the prologue left the pointer.
    """
    nbytes, align = 0, 0
    depth, base, probe = word, 0, 0  # base: after the prologue
    for line in body:
        mnemonic, operands = _instruction(line)
        if mnemonic[:1] not in "jcpr" and "sp" not in operands:
            continue  # most are of numbers
        if (not mnemonic or mnemonic[0] in "jc") and not base and depth > word:
            base = depth
        if mnemonic.startswith("push"):
            depth += word
        elif mnemonic.startswith("pop"):
            depth -= word
        elif mnemonic.startswith(("sub", "add")) and (match := _SUB.fullmatch(operands)):
            depth += int(match[1]) if mnemonic.startswith("sub") else -int(match[1])
        elif mnemonic.startswith("lea") and (match := _LEA.fullmatch(operands)):
            depth -= int(match[1] or 0)
        elif mnemonic.startswith("lea") and (match := _PROBE.fullmatch(operands)):
            probe = depth + int(match[1])  # large frames are touched page by page, down to here
        elif mnemonic.startswith("cmp") and probe and re.search(r"%[re]sp$", operands):
            depth = probe
        elif mnemonic.startswith("and") and (match := _SUB.fullmatch(operands)):
            align = max(align, -int(match[1]))
            depth += _lost(depth, -int(match[1]), word)
        elif mnemonic.startswith("ret"):
            depth = base or word
        nbytes = max(nbytes, depth)
    return nbytes, align


def _lost(depth: int, align: int, word: int) -> int:
    """The most that is lost where the pointer, so far below the caller's, is rounded down."""
    if word == 4:
        return align - word
    # Before a call the pointer is a multiple of 16, by the ABI; the return address is in `depth`.
    return max(0, align - 16) + (-depth) % min(16, align)
