"""Small tables for notebooks, which ask objects for `_repr_html_`."""

from collections.abc import Sequence
from html import escape

MOST_ROWS = 30


def table(title: str, heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table of at most so many rows, and how many there are in all."""
    shown = [f"<tr>{_cells('td', row)}</tr>" for row in rows[:MOST_ROWS]]
    if len(rows) > MOST_ROWS:
        shown.append(f'<tr><td colspan="{len(heading)}">… {len(rows):,} in all</td></tr>')
    return (
        f"<table><caption>{escape(title)}</caption>"
        f"<thead><tr>{_cells('th', heading)}</tr></thead><tbody>{''.join(shown)}</tbody></table>"
    )


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f'<{tag} style="text-align: left">{escape(text)}</{tag}>' for text in texts)
