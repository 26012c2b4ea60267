"""A chart as an SVG file that stands alone, in light and dark surroundings."""

from html import escape

from transformer_cli.evaluation.report import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, Chart

_COLOURS = ("#0067b8", "#c25100", "#2e7d32", "#7b1fa2")
_DASHES = ("none", "8 4", "2 4", "12 4 2 4")
_ROW = 20


def svg_of(chart: Chart) -> str:
    """The picture, with a white ground and a legend."""
    height = HEIGHT + _ROW * (len(chart.lines) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-_ROW} {WIDTH} {height + _ROW}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="{escape(chart.title)}">',
        f'<rect y="{-_ROW}" width="{WIDTH}" height="{height + _ROW}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="-4" font-weight="bold">{escape(chart.title)}</text>',
    ]
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for tick in chart.y_ticks:
        y = f"{tick.position:.1f}"
        parts.append(f'<path d="M{LEFT} {y}H{right}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y}" dy="4" text-anchor="end">{escape(tick.label)}</text>')  # fmt: skip
    for tick in chart.x_ticks:
        parts.append(f'<text x="{tick.position:.1f}" y="{bottom + 18}" text-anchor="middle">{escape(tick.label)}</text>')  # fmt: skip
    middle = (LEFT + right) / 2
    parts.append(f'<text x="{middle:.0f}" y="{bottom + 38}" text-anchor="middle">{escape(chart.x_label)}</text>')  # fmt: skip
    for number, line in enumerate(chart.lines):
        style = f'stroke="{_COLOURS[number % 4]}" stroke-dasharray="{_DASHES[number % 4]}" stroke-width="2" fill="none"'
        parts.append(f'<polyline points="{line.points}" {style}/>')
        for x, y_ in line.markers:
            parts.append(f'<circle cx="{x:.1f}" cy="{y_:.1f}" r="3" fill="{_COLOURS[number % 4]}"/>')  # fmt: skip
        y = str(HEIGHT + _ROW * number)
        parts.append(f'<path d="M{LEFT} {y}h32" {style}/>')
        parts.append(f'<text x="{LEFT + 40}" y="{y}" dy="4">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
