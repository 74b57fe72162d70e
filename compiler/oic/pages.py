"""The pages of `oic explain`: the sections of `docs/errors.md`, one for each slug and each status.

    ### table-rank

    what it means

    ```oi wrong          the smallest program that makes the mistake, where it is one of a graph
    ```

    the cure

    ```oi cured
    ```
"""

import re
from dataclasses import dataclass
from textwrap import TextWrapper

from oic.diagnostics import did_you_mean, fail
from oic.resources import docs_dir

_SECTION = re.compile(r"^### (\S+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_PROGRAM = re.compile(r"^```oi (wrong|cured)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"(?:(?:error|warning)?\[)?(OIC_ERR_\w+|[a-z]+(?:-[a-z]+)*)\]?")


@dataclass(frozen=True)
class Page:
    """What is said of one kind of mistake.

    text      the section without its heading, in Markdown
    programs  by 'wrong' and 'cured', where the mistake is one of a graph
    """

    slug: str
    text: str
    programs: dict[str, str]

    def plain(self, width: int = 80) -> str:
        """The page as a terminal of so many columns shows it: programs are indented."""

        def program(found: re.Match[str]) -> str:
            return "".join(f"    {line}".rstrip() + "\n" for line in found[2].splitlines())

        parts = _PROGRAM.sub(program, self.text).strip("\n").split("\n\n")
        prose = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
        filled = [p if p.startswith("    ") else prose.fill(p) for p in parts]
        return "\n\n".join([self.slug, *filled]) + "\n"


def pages() -> dict[str, Page]:
    """Every page, by slug or status, in the order of the docs."""
    text = (docs_dir() / "errors.md").read_text(encoding="utf-8")
    return {
        slug: Page(slug, body.strip() + "\n", dict(_PROGRAM.findall(body)))
        for slug, body in _SECTION.findall(text)
    }


def named(text: str) -> str | None:
    """The slug that a text is, also as `error[slug]`; None for what cannot be one."""
    found = _NAME.fullmatch(text)
    return found[1] if found else None


def page(slug: str) -> Page:
    """The page of a slug or status.  Raises OicError `unknown-slug`."""
    known = pages()
    if slug not in known:
        raise fail("unknown-slug", f"there is no diagnostic '{slug}'", hint=did_you_mean(slug, known))
    return known[slug]
