"""C identifiers: valid, unique in their scope, and as close to the user's names as that allows."""

from __future__ import annotations

import re

# Words of C99 and C11, and of C++, from which the header may be included.
_C = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while _Bool _Complex _Imaginary _Alignas _Alignof _Atomic _Generic
    _Noreturn _Static_assert _Thread_local asm bool true false nullptr alignas alignof thread_local
    static_assert constexpr typeof typeof_unqual
"""
_CPP = """
    and and_eq bitand bitor catch char16_t char32_t char8_t class compl concept const_cast
    consteval constinit co_await co_return co_yield decltype delete dynamic_cast explicit export
    friend mutable namespace new noexcept not not_eq operator or or_eq private protected public
    reinterpret_cast requires static_cast template this throw try typeid typename using virtual
    wchar_t xor xor_eq
"""
# What generated functions use themselves, and what the headers they include may define as macros.
_TAKEN = """
    s in out state why shape NULL memcpy memset memcmp size_t ptrdiff_t offsetof INFINITY NAN
    HUGE_VAL HUGE_VALF isnan isinf isfinite signbit fpclassify errno linux unix i386 assert main
    stdin stdout stderr open close mmap munmap stat fstat environ
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t
    intmax_t uintmax_t
"""
RESERVED = frozenset((_C + _CPP + _TAKEN).split())


def identifier(text: str, otherwise: str = "v") -> str:
    """The text as a C identifier, neither a keyword nor a name with a meaning of its own."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or otherwise
    if name[0].isdigit():
        name = f"{otherwise}{name}"
    reserved = name in RESERVED or name.startswith(("oic_", "OIC_"))
    macro = re.fullmatch(r"U?INT\d+_(C|MAX|MIN)|E[A-Z0-9]+|M_\w+", name)  # of stdint.h, errno.h, math.h
    return f"{name}_" if reserved or macro else name


class Names:
    """The identifiers of one scope."""

    def __init__(self, taken: frozenset[str] | set[str] = frozenset()) -> None:
        self._taken = set(taken)
        self._stems: dict[str, str] = {}

    def unique(self, hint: str, otherwise: str = "v") -> str:
        """A name like the hint that was not given before: `h`, then `h_2`, `h_3`."""
        base = identifier(hint, otherwise)
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        self._stems[name] = base
        return name

    def stem(self, name: str) -> str:
        """The name before a number was added: `h` of `h_2`."""
        return self._stems.get(name, name)

    def stem_of(self, hint: str) -> str:
        """The name that a hint gives when it is new."""
        return identifier(hint) if hint else ""

    def reserve(self, name: str) -> str:
        """Keep everybody else from a name."""
        self._taken.add(name)
        return name

    def __contains__(self, name: str) -> bool:
        return name in self._taken
