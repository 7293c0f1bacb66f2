"""The curves of a simulated race as an SVG: two panels over item calls, one line an order. Computes no figure.

Written by hand, since a few lines and words need no library, and so that equal curves give equal bytes.
"""

from collections.abc import Mapping, Sequence
from math import log10
from xml.sax.saxutils import escape

Curve = Sequence[float]
"""A share after each item call; it stays at its last value."""

WIDTH, HEIGHT, LEFT, TOP, GAP = 400, 240, 52, 40, 56
FONT = 'font-family="sans-serif" font-size="12"'
COLOURS = ("#0b6e4f", "#c1440e", "#7a5195", "#8a8a8a", "#1f77b4")
DASHES = ("", "", "6 3", "2 3", "8 3 2 3")


def plot(title: str, panels: Mapping[str, Mapping[str, Curve]], calls: int, marks: Mapping[str, int]) -> str:
    """Draw panels beside each other.

    Args:
        title: of the whole.
        panels: for each panel, by its title, the curve of each order.
        calls: item calls at the right edge.
        marks: for a panel, the item calls that are its target.
    """
    names = list(next(iter(panels.values())))
    total = len(panels) * (WIDTH + LEFT + GAP)
    bottom = TOP + HEIGHT + 64
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {bottom}" {FONT}>',
        f'<rect width="{total}" height="{bottom}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>',
    ]
    for number, (name, curves) in enumerate(panels.items()):
        left = LEFT + number * (WIDTH + LEFT + GAP)
        parts += _frame(left, name, calls, marks.get(name))
        for place, curve in enumerate(curves.values()):
            parts.append(_line(left, curve, calls, COLOURS[place], DASHES[place]))
    parts += _legend(names, bottom - 10)
    return "\n".join([*parts, "</svg>", ""])


def _x(left: int, call: float, calls: int) -> float:
    return left + WIDTH * log10(call) / log10(calls)


def _y(share: float) -> float:
    return TOP + HEIGHT * (1.0 - share)


def _frame(left: int, name: str, calls: int, mark: int | None) -> list[str]:
    parts = [f'<rect x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#444"/>']
    parts.append(f'<text x="{left + WIDTH / 2:.0f}" y="{TOP - 6}" text-anchor="middle">{escape(name)}</text>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<text x="{left - 6}" y="{_y(share) + 4:.1f}" text-anchor="end">{share:.0%}</text>')
        parts.append(f'<path d="M{left} {_y(share):.1f}h{WIDTH}" stroke="#ddd"/>')
    for call in (1, 10, 100, 1_000, 10_000):
        at = _x(left, call, calls)
        parts.append(f'<path d="M{at:.1f} {TOP}v{HEIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{at:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{call:,}</text>')
    parts.append(f'<text x="{left + WIDTH}" y="{TOP + HEIGHT + 32}" text-anchor="end">item calls</text>')
    if mark is not None:
        at = _x(left, mark, calls)
        parts.append(f'<path d="M{at:.1f} {TOP}v{HEIGHT}" stroke="#c00" stroke-dasharray="3 3"/>')
        parts.append(
            f'<text x="{at - 4:.1f}" y="{TOP + HEIGHT - 6}" text-anchor="end" fill="#c00">target {mark:,}</text>'
        )
    return parts


def _line(left: int, curve: Curve, calls: int, colour: str, dash: str) -> str:
    """The points at which the share changes, as steps."""
    points = [f"M{left} {_y(0.0):.1f}"]
    before = 0.0
    for call, share in enumerate(curve, 1):
        if share != before:
            points.append(f"H{_x(left, call, calls):.1f}V{_y(share):.1f}")
            before = share
    points.append(f"H{left + WIDTH}" if before == 1.0 else f"H{_x(left, max(1, len(curve)), calls):.1f}")
    return f'<path d="{"".join(points)}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'


def _legend(names: Sequence[str], y: int) -> list[str]:
    parts = []
    for place, name in enumerate(names):
        x = LEFT + place * 150
        style = f'stroke="{COLOURS[place]}" stroke-width="2" stroke-dasharray="{DASHES[place]}"'
        parts.append(f'<path d="M{x} {y - 4}h28" {style}/><text x="{x + 34}" y="{y}">{escape(name)}</text>')
    return parts
