"""The rules by which a written number is read aloud, and texts drawn by rule to learn them from.

Standard library only.  `spell` is the truth that the model is trained on and measured against.
A text belongs to exactly one category, told by its form alone:

    cardinal   1204   1,204   0      one thousand two hundred four
    negative   -17   -3.5            minus seventeen; the rest is a cardinal or a decimal
    decimal    3.14   1,204.50       three point one four
    year       in 1984               nineteen eighty four (`in` marks a year and is not read)
    ordinal    21st   1,204th        twenty first
    money      $5.20   $1,204        five dollars and twenty cents
    time       7:05   7:05 pm        seven oh five; seven oh five p m

There is no leading zero; separators are all there or all absent; `and` only joins dollars to cents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from random import Random

BOS = 2  # the token before the text; every other token is the ASCII code of a character
EQUALS = ord("=")  # the token between the text and its words
END = ord("\n")  # the token after the words
VOCAB = 128

SMALL = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
]
TENS = [
    *("zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty"),
    "ninety",
]
IRREGULAR = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}

MILLIONS = r"(?:0|[1-9]\d{0,6}|[1-9]\d{0,2},\d{3}|[1-9],\d{3},\d{3})"  # 0 to 9,999,999
THOUSANDS = r"(?:0|[1-9]\d{0,5}|[1-9]\d{0,2},\d{3})"  # 0 to 999,999
DECIMAL = rf"(?!(?:\D*\d){{9}}){THOUSANDS}\.\d{{1,7}}"  # at most 8 digits in all
FORMS = {
    "cardinal": re.compile(rf"({MILLIONS})", re.ASCII),
    "negative": re.compile(rf"-(?!0$)({MILLIONS}|{DECIMAL})", re.ASCII),
    "decimal": re.compile(rf"({DECIMAL})", re.ASCII),
    "year": re.compile(r"in ([12]\d{3})", re.ASCII),
    "ordinal": re.compile(rf"({MILLIONS})(st|nd|rd|th)", re.ASCII),
    "money": re.compile(rf"\$({THOUSANDS})(?:\.(\d\d))?", re.ASCII),
    "time": re.compile(r"(1[0-2]|[1-9]):([0-5]\d)(?: ([ap])m)?", re.ASCII),
}
# Of 100 texts drawn; the small categories (2,000 years, 2,160 times) get the smaller share.
SHARES = {
    "cardinal": 16,
    "negative": 16,
    "decimal": 16,
    "year": 10,
    "ordinal": 16,
    "money": 16,
    "time": 10,
}
CATEGORIES = tuple(FORMS)


# Reading


def category(text: str) -> str:
    """The category of a text.

    Errors: ValueError if the text has none of the forms.
    """
    for name, form in FORMS.items():
        if form.fullmatch(text):
            return name
    raise ValueError(f"no rule reads {text!r}")


def spell(text: str) -> str:
    """The words of a text: `1,204` gives `one thousand two hundred four`.

    Errors: ValueError if the text has none of the forms.
    """
    name = category(text)
    found = FORMS[name].fullmatch(text)
    assert found is not None
    first, *rest = found.groups()
    match name:
        case "cardinal":
            return cardinal(number(first))
        case "negative":
            return f"minus {spell(first)}"
        case "decimal":
            whole, _, places = first.partition(".")
            digits = " ".join(SMALL[int(place)] for place in places)
            return f"{cardinal(number(whole))} point {digits}"
        case "year":
            return year(int(first))
        case "ordinal":
            if rest[0] != suffix(number(first)):
                raise ValueError(f"no rule reads {text!r}: the ending is wrong")
            return ordinal(number(first))
        case "money":
            return money(number(first), int(rest[0] or 0))
        case _:
            return time(int(first), int(rest[0]), rest[1])


def number(digits: str) -> int:
    """The value of digits with or without separators."""
    return int(digits.replace(",", ""))


def cardinal(n: int) -> str:
    """The words of 0 <= n < 10,000,000."""
    if n < 20:
        return SMALL[n]
    if n < 100:
        return TENS[n // 10] + (f" {SMALL[n % 10]}" if n % 10 else "")
    for unit, word in ((1_000_000, "million"), (1_000, "thousand"), (100, "hundred")):
        if n >= unit:
            head, tail = divmod(n, unit)
            return f"{cardinal(head)} {word}" + (f" {cardinal(tail)}" if tail else "")
    raise AssertionError(n)


def ordinal(n: int) -> str:
    """The words of the n-th: the cardinal with its last word changed."""
    head, space, last = cardinal(n).rpartition(" ")
    if last in IRREGULAR:
        return head + space + IRREGULAR[last]
    return head + space + (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")


def suffix(n: int) -> str:
    """The letters after the digits of the n-th: 21 gives `st`, 11 gives `th`."""
    if n % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")


def year(n: int) -> str:
    """The words of a year from 1000 to 2999: in pairs, except the first ten of a millennium."""
    century, rest = divmod(n, 100)
    if century % 10 == 0 and rest < 10:
        return cardinal(n)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def money(dollars: int, cents: int) -> str:
    """The words of an amount; a part that is zero is not read, unless both are."""
    whole = f"{cardinal(dollars)} dollar{'' if dollars == 1 else 's'}"
    part = f"{cardinal(cents)} cent{'' if cents == 1 else 's'}"
    if cents == 0:
        return whole
    return part if dollars == 0 else f"{whole} and {part}"


def time(hour: int, minute: int, half: str | None) -> str:
    """The words of a time on the twelve-hour clock; `half` is `a`, `p` or None."""
    words = [cardinal(hour)]
    if minute:
        words += ["oh"] * (minute < 10) + [cardinal(minute)]
    elif half is None:
        words += ["o'clock"]
    return " ".join(words + ([half, "m"] if half else []))


# Tokens


def prompt(text: str) -> list[int]:
    """The tokens that ask for a text's words: BOS, the text, `=`."""
    return [BOS, *text.encode("ascii"), EQUALS]


def answer(text: str) -> list[int]:
    """The tokens of the right answer to `prompt(text)`: the words, END."""
    return [*spell(text).encode("ascii"), END]


# Texts


def is_held_out(text: str) -> bool:
    """Whether a text is kept from training: true of one in eight, told by a hash.

    The hash does not see signs and separators, so `1204`, `1,204` and `-1204` share their fate.
    What has at most three other characters is always trained on: there is too little of it.
    """
    key = text.lstrip("-").replace(",", "")
    return len(key) > 3 and sha256(key.encode("ascii")).digest()[0] % 8 == 0


def training_texts(rng: Random) -> Iterator[str]:
    """Texts without end, all of them not held out."""
    return (text for text in texts(rng) if not is_held_out(text))


def held_out(n: int = 2000) -> list[str]:
    """n different held-out texts, always the same."""
    found: dict[str, None] = {}
    for text in texts(Random(1984)):
        if is_held_out(text):
            found[text] = None
        if len(found) == n:
            break
    return list(found)


def texts(rng: Random) -> Iterator[str]:
    """Texts without end, the categories in the proportions of `SHARES`."""
    names, shares = list(SHARES), list(SHARES.values())
    while True:
        yield DRAW[rng.choices(names, shares)[0]](rng)


def draw_integer(rng: Random, most_digits: int) -> int:
    """A number whose count of digits is uniform; in one of four, most digits are zeros."""
    digits = rng.randint(1, most_digits)
    n = rng.randint(10 ** (digits - 1) if digits > 1 else 0, 10**digits - 1)
    if rng.random() < 0.25:
        first, rest = str(n)[0], str(n)[1:]
        return int(first + "".join(d if rng.random() < 0.3 else "0" for d in rest))
    return n


def draw_separated(rng: Random, most_digits: int) -> str:
    """A number as digits, half of the time with separators."""
    n = draw_integer(rng, most_digits)
    return f"{n:,}" if rng.random() < 0.5 else str(n)


def draw_negative(rng: Random) -> str:
    """A negative cardinal or, one in four, a negative decimal."""
    if rng.random() < 0.25:
        return f"-{draw_decimal(rng)}"
    text = draw_separated(rng, 7)
    return draw_negative(rng) if text == "0" else f"-{text}"


def draw_decimal(rng: Random) -> str:
    """A decimal of at most eight digits."""
    whole = draw_separated(rng, 6)
    places = rng.randint(1, min(7, 8 - len(whole.replace(",", ""))))
    return f"{whole}.{rng.randrange(10**places):0{places}}"


def draw_ordinal(rng: Random) -> str:
    """A number with the ending it takes."""
    text = draw_separated(rng, 7)
    return text + suffix(number(text))


def draw_money(rng: Random) -> str:
    """An amount of dollars, two of three with cents, of which one in eight has none."""
    text = f"${draw_separated(rng, 6)}"
    if rng.random() < 1 / 3:
        return text
    cents = 0 if rng.random() < 1 / 8 else rng.randrange(100)
    return f"{text}.{cents:02}"


def draw_time(rng: Random) -> str:
    """A time, one in eight on the hour."""
    minute = 0 if rng.random() < 1 / 8 else rng.randrange(60)
    return f"{rng.randint(1, 12)}:{minute:02}{rng.choice(('', ' am', ' pm'))}"


def draw_year(rng: Random) -> str:
    """A year, one in four from the first ten of its century."""
    n = rng.randint(1000, 2999)
    return f"in {n - n % 100 + n % 10 if rng.random() < 0.25 else n}"


DRAW: dict[str, Callable[[Random], str]] = {
    "cardinal": lambda rng: draw_separated(rng, 7),
    "negative": draw_negative,
    "decimal": draw_decimal,
    "year": draw_year,
    "ordinal": draw_ordinal,
    "money": draw_money,
    "time": draw_time,
}
