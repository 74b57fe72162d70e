"""What `oic explain` does: memory decisions."""

from dataclasses import asdict

from oic.cli.text import in_columns, json_text, say
from oic.diagnostics import count_of
from oic.driver import Program
from oic.memory.map import Placed, Stored, memory_map


def print_decisions(program: Program, as_json: bool) -> None:
    """Print every decision with its source line and reason; what is copied is listed at the end."""
    table = memory_map(program.planned)
    values, stores = table.values, table.stores
    if as_json:
        say(json_text({"values": [*map(asdict, values)], "stores": [*map(asdict, stores)]}))
        return
    source = program.graph.source
    last: tuple[str, int] = ("", 0)
    lines: list[str] = []
    decisions: list[Placed | Stored] = [*values, *stores]
    several = len({f.function for f in decisions}) > 1
    for found in sorted(decisions, key=lambda f: (f.function, f.line)):
        if several and found.function != last[0]:
            lines.append(f"entry '{found.function}'")
        if (found.function, found.line) != last and found.line:
            lines.append(f"{source.name}:{found.line}  {source.line(found.line).strip()}")
        last = (found.function, found.line)
        name = found.name if isinstance(found, Placed) else f"> {found.state}"
        lines.append(f"    {name:<14} {found.type:<18} {found.kind:<9} {_where(found):<26} {found.reason}")
    copies = [f for f in decisions if f.kind == "copy"]
    total = sum(f.nbytes for f in copies)
    counts = f"{count_of(len(values), 'value')}, {count_of(len(stores), 'store')}"
    lines += ["", f"{counts}; {count_of(len(copies), 'copy')} of at most {total:,} bytes"]
    for copy in copies:
        what = copy.name if isinstance(copy, Placed) else f"{copy.value} to {copy.state}"
        lines.append(f"    line {copy.line}: {what} {copy.type}, {copy.nbytes:,} bytes: {copy.reason}")
    say(in_columns(lines))


def _where(found: Placed | Stored) -> str:
    if isinstance(found, Stored):
        return f"from '{found.value}'"
    where = found.space if found.offset is None else f"{found.space}+{found.offset}"
    return f"{where} '{found.buffer}'" if found.buffer else where
