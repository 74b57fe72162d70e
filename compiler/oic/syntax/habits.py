"""Habits from other languages: what looks like theirs, and how it is written here.

A pattern is matched against a whole statement, up to its `;` or `{`.  In a pattern a blank matches
any blanks, NAME an identifier, ARGS operands without parentheses, and PLACE a
variable with or without indices; each of the three is a group that the hint may show by number.
"""

import re

from oic.dtypes import ALL

_WORDS = {
    "NAME": r"([A-Za-z_]\w*)",
    "ARGS": r"([^()]*?)",
    "PLACE": r"([A-Za-z_]\w*(?:\[[^\]]*\])?)",
    " ": r"\s*",
}

INFIX = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem", "@": "matmul"}

_LOOP = "a loop has a name, and its range is in parentheses: 'loop rows ({0} in {1}) {{ … }}'"
_BRANCH = "a condition chooses between blocks: 'branch condition yes no;'"

Table = list[tuple[re.Pattern[str], str]]


def _compiled(*table: tuple[str, str]) -> Table:
    made = []
    for pattern, hint in table:
        for word, regex in _WORDS.items():
            pattern = pattern.replace(word, regex)
        made.append((re.compile(pattern, re.DOTALL), hint))
    return made


def _by_word(meant: dict[str, str]) -> dict[str, str]:
    """What is meant, by each of the words for it."""
    return {word: meaning for meaning, words in meant.items() for word in words.split()}


# Statements that start with no statement's word.
STATEMENTS = _compiled(
    (r"for \(? NAME in range \( ([^,()]+) \) \)? :?", _LOOP.replace("{1}", "0..{1}")),
    (r"for \(? NAME in ([^{]+?) \)? :?", _LOOP),
    (r"for \( (?:\w+\s+)?NAME = ([^;]+)", _LOOP.replace("{1}", "{1}..n")),
    (r"for\b.*", _LOOP.format("i", "0..n").replace("{", "{{").replace("}", "}}")),
    (r"while\b.*", "a loop runs over a range, 'loop rows (i in 0..n) {{ … }}'; 'branch c yes no;' chooses in it"),
    (r"(?:if|else|elif|switch|match)\b.*", _BRANCH),
    (r"(?:call|goto|jump|run) NAME.*", "a block is run with 'branch {0};'"),
    (r"(?:break|continue)\b", "a block that ends early is left with 'return;', its loops included"),
    (r"(?:let|var|auto|const) NAME : ([^=]+)", "a temporary is declared as 'assign {0}: {1};'"),
    (r"(?:let |var |auto |const )?PLACE = NAME \( ARGS \)", "write 'op {1}({2}) >> {0};'"),
    (r"NAME = NAME (\[.*\])", "write 'cache.read {1}{2} >> {0};' if '{1}' is persistent"),
    (r"NAME (\[.*\]) = NAME", "write 'cache.write {2} >> {0}{1};' if '{0}' is persistent"),
    (r"NAME = NAME", "write 'transfer {1} >> {0};'"),
    *((rf"(?:let |var |auto )?NAME = NAME \{sign} NAME", f"write 'op {name}({{1}}, {{2}}) >> {{0}};'")
      for sign, name in INFIX.items()),
    (r"(?:let |var |auto )?NAME =.*", "write 'op operator(operands) >> {0};', one operator at a time"),
    (r"NAME \+\+", "write 'cache.increment {0};'"),
    (r"NAME --", "write 'cache.decrement {0};'"),
    (r"NAME \+= ([\w.]+)", "write 'op add({0}, {1}) >> {0};', or for a persistent counter 'cache.increment {1} {0};'"),
    (r"NAME -= ([\w.]+)", "write 'op sub({0}, {1}) >> {0};', or for a persistent counter 'cache.decrement {1} {0};'"),
    (r"PLACE >> PLACE", "write 'transfer {0} >> {1};'"),
    (r"NAME \( ARGS \) (?:>>|->|=>|=) PLACE", "write 'op {0}({1}) >> {2};'"),
    (r"NAME \(.*", "an operator is called as 'op {0}(…) >> result;'"),
    (r"(read|write|increment|decrement|reset)\b.*", "did you mean 'cache.{0}'?"),
)  # fmt: skip

# Statements of state as other caches call them, and the word that is meant.
CACHE = _by_word({
    "write": "append push store set put update add insert", "read": "get load fetch lookup view",
    "reset": "clear free zero init", "increment": "inc incr advance step", "decrement": "dec decr",
})  # fmt: skip

# Statements whose word is right and whose form is not.
FORMS = _compiled(
    (r"loop \(? NAME in ([^{]+?) \)?", _LOOP),
    (r"loop NAME NAME in ([^{]+)", "the range of a loop is in parentheses: 'loop {0} ({1} in {2}) {{ … }}'"),
    (r"op PLACE = NAME \( ARGS \)", "write 'op {1}({2}) >> {0};'"),
    (r"op NAME \( ARGS \) (?:->|=>|>|=|:|,|) PLACE", "results come after '>>': 'op {0}({1}) >> {2};'"),
    (r"op NAME \( ARGS \)", "say where the result goes: 'op {0}({1}) >> y;'"),
    (r"op NAME ([^()（）]+?) >> PLACE", "operands are in parentheses: 'op {0}({1}) >> {2};'"),
    (r"cache\.(increment|decrement) PLACE (?:by |, )?([\w.]+)", "the amount comes first: 'cache.{0} {2} {1};'"),
    (r"(cache\.read|cache\.write|transfer) PLACE <<? PLACE", "the destination comes last: '{0} {2} >> {1};'"),
    (r"transfer PLACE = PLACE", "the destination comes last: 'transfer {1} >> {0};'"),
    (r"(cache\.read|cache\.write|transfer) PLACE (?:->|=>|>|,|to ) PLACE", "write '{0} {1} >> {2};'"),
    (r"(cache\.read|transfer) PLACE", "say where the value goes: '{0} {1} >> x;'"),
    (r"cache\.write PLACE", "say what is written: 'cache.write x >> {0};'"),
    (r"return .+", "a block returns no value: outputs are the volatile variables it wrote; write 'return;'"),
    (r"branch NAME (?:\?|,|) NAME (?::|,) NAME", "write 'branch {0} {1} {2};'"),
    (r"block NAME \(.*", "a block takes no parameters, it sees the variables of the graph: 'block {0} {{ … }}'"),
    (r"(?:assign )?NAME : NAME \( ([^()]*) \).*", "dimensions are in brackets: '{0}: {1}[{2}]'"),
    (r"((?:assign )?)NAME : (\w+(?: \[[^\]]*\])?) = ([^=;]+)", "a starting value is written '{0}{1}: {2} @init({3});'"),
    (rf"({'|'.join(ALL)})\b (\[[^\]]*\])? NAME",
     "the name comes first: '{2}: {0}{1};'"),
)  # fmt: skip

# Words that start no section, and the section that is meant.
SECTIONS = _by_word({
    "dynamic": "input inputs arguments extents", "volatile": "output outputs temporaries locals",
    "constant": "weight weights parameters params const constants", "persistent": "state states cache buffers",
    "block": "function func def fn main", "sizes": "define dims dimensions",
})  # fmt: skip


def written(table: Table, text: str) -> str | None:
    """What to write for a statement or declaration, by the first line of a table that it matches, or None."""
    plain = " ".join(text.split())
    for pattern, hint in table:
        if (found := pattern.fullmatch(plain)) is not None:
            return hint.format(*(group or "" for group in found.groups()))
    return None
