"""Small graphs on which a pass once went wrong: what each of them is about, and its text."""

from __future__ import annotations

import pytest

from tests.fuzz.checks import check, compiled, steps

FOUND = {
    # The inner loop's start was computed over the outer carried value, which `add` still reads.
    "a start value over a carried one": """
    dynamic { d1: f32[4]; d2: f32[4]; }
    volatile { a: f32[4]; }
    block entry {
        assign z: f32[4];
        assign u: f32[4];
        transfer d1 >> a;
        loop l1 (i in 0..3) {
            op tanh(d2) >> z;
            op mul(a, d2) >> u;
            op max(u, z) >> z;
            op tanh(a) >> u;
            loop l2 (j in 0..2) { op softmax(z) >> z; op add(z, u) >> z; }
            transfer z >> a;
        }
        return;
    }
    """,
    # A fused op reads its operand while it writes: their memory must not overlap.
    "a fused op over a transposed operand": """
    dynamic { d1: f32[4, 4]; }
    volatile { a: f32[4, 4]; b: f32[4, 4]; }
    block entry {
        assign s: f32[4, 4];
        assign t: f32[4, 4];
        op softmax(d1) >> s;
        op transpose(s, perm=[1, 0]) >> t;
        op neg(t) >> t;
        op tanh(t) >> t;
        op softmax(t) >> a;
        return;
    }
    """,
    # Folded constants went behind the first function, where a later entry has one of its own.
    "a constant folded between two entries": """
    dynamic { d1: f32[4]; }
    constant { c1: f32[4]; c2: f32[4]; }
    volatile { a: f32[4]; }
    block entry {
        op mul(c1, c1) >> a;
        op add(a, d1) >> a;
        return;
    }
    block other @entry {
        op add(c2, d1) >> a;
        return;
    }
    """,
    # The branch taken gives another size than the result is declared to have.
    "a known branch of another size": """
    dynamic { d1: f32[4]; }
    constant { flag: bool @init(true); }
    volatile { a: f32[?]; }
    block entry {
        assign known: bool;
        op not(flag) >> known;
        transfer d1 >> a;
        branch known long short;
        op neg(a) >> a;
        return;
    }
    block long { op concat(a, d1, axis=0) >> a; return; }
    block short { op slice(d1, axis=0, start=0, end=2) >> a; return; }
    """,
    # Arithmetic of a check inside the `if` of one loop was used by the check of the next.
    "two loops that may have no iteration": """
    dynamic { d1: f32[4]; d2: f32[N] @max(N=3); }
    persistent { p0: i32; p1: i32; T0(t0): f32[4] @table @fixed(t0=4); }
    volatile { a: f32[N]; }
    block entry {
        op neg(d2) >> a;
        cache.increment p0;
        loop l1 (i in 0..N) { cache.write d1 >> T0[p1+1]; }
        loop l2 (i in 0..N) { cache.write d1 >> T0[p1+1]; cache.write d1 >> T0[p1+1+i]; }
        return;
    }
    """,
    # Ids were checked early against a length that is only bound later.
    "ids of a table that is a slice": """
    dynamic { d1: i32[2, 3]; d2: f32[4]; }
    persistent { p0: i32; T0(t0): f32[4] @table @fixed(t0=5); }
    volatile { a: f32[2, 3, 4]; }
    block entry {
        assign rows: f32[?, 4];
        cache.write d2 >> T0[p0];
        cache.increment p0;
        cache.read T0[0..p0] >> rows;
        op gather(rows, d1) >> a;
        return;
    }
    """,
    # Swapped and rotated values, and one carried unchanged, with a start value needed later.
    "every permutation": """
    dynamic { d1: f32[4]; d2: f32[4]; d3: f32[4]; }
    volatile { a: f32[4]; b: f32[4]; c: f32[4]; d: f32[4]; e: f32[4]; }
    block entry {
        assign t: f32[4];
        op tanh(d1) >> a;
        op neg(d2) >> b;
        transfer a >> c;
        transfer d3 >> d;
        loop l1 (i in 0..3) {
            transfer a >> t; transfer b >> a; transfer t >> b;
            loop l2 (j in 0..2) { transfer a >> t; transfer b >> a; transfer c >> b; transfer t >> c; }
            op add(d, a) >> e;
        }
        op add(d, c) >> d;
        return;
    }
    """,
}


@pytest.mark.parametrize("what", FOUND)
def test_it_stays_right(what: str) -> None:
    program = compiled(f"graph found {{{FOUND[what]}}}\n")
    assert program is not None
    for seed in range(3):
        fault = check(program, steps(program, seed))
        assert fault is None, str(fault)
