"""The two languages of the site: which pages are Chinese, and which page the switch leads to."""

CHINESE = "zh/"
NAMES = {"en": "English", "zh": "中文"}


def language_of(page: str) -> str:
    """The language of a page, by its path relative to docs/."""
    return "zh" if page.startswith(CHINESE) else "en"


def switch(page: str, pages: list[str]) -> list[dict[str, str]]:
    """What the language switch of a page offers: the same page, or else the first page, of each language.

    Args:
        page: the path of the page, relative to docs/.
        pages: the paths of all pages.

    Returns:
        The page, name and code of each language; nothing if no page is Chinese.
    """
    starts = {"en": "index.md", "zh": f"{CHINESE}README.md"}
    if starts["zh"] not in pages:
        return []
    plain = page.removeprefix(CHINESE)
    same = {"en": plain, "zh": CHINESE + plain}
    if page in starts.values():
        same = starts
    chosen = {code: same[code] if same[code] in pages else starts[code] for code in NAMES}
    return [{"name": NAMES[code], "page": chosen[code], "lang": code} for code in NAMES]
