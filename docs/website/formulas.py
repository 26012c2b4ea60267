"""Formulas between dollar signs as MathML, which browsers draw without a script or a font."""

import html
import re

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def with_formulas(page: str) -> str:
    """The HTML of a page with each formula as MathML.

    Args:
        page: HTML in which the extension Arithmatex has marked the formulas.
    """
    page = BLOCK.sub(lambda found: f'<div class="formula">{_mathml(found[1], "block")}</div>', page)
    return INLINE.sub(lambda found: _mathml(found[1], "inline"), page)


def _mathml(latex: str, display: str) -> str:
    formula: str = convert(html.unescape(latex).strip(), display=display)
    return formula
