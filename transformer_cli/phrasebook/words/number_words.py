"""Numbers from 1 to 89 in words."""

from __future__ import annotations

UNITS = [
    "zero",
    "uno",
    "due",
    "tre",
    "quattro",
    "cinque",
    "sei",
    "sette",
    "otto",
    "nove",
    "dieci",
    "undici",
    "dodici",
    "tredici",
]
UNITS += ["quattordici", "quindici", "sedici", "diciassette", "diciotto", "diciannove"]
TENS = ("", "", "venti", "trenta", "quaranta", "cinquanta", "sessanta", "settanta", "ottanta")
ENGLISH_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
ENGLISH_UNITS += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
ENGLISH_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty")


def english_number(value: int) -> str:
    """ "twenty-one"; from 1 to 89."""
    if value < 20:
        return ENGLISH_UNITS[value]
    tens, unit = divmod(value, 10)
    return ENGLISH_TENS[tens] + (f"-{ENGLISH_UNITS[unit]}" if unit else "")


def italian_number(value: int) -> str:
    """ "ventuno", "ventitré"; from 1 to 89."""
    if value < 20:
        return UNITS[value]
    tens, unit = divmod(value, 10)
    if unit in {1, 8}:
        return TENS[tens][:-1] + UNITS[unit]
    return TENS[tens] + ("" if not unit else "tré" if unit == 3 else UNITS[unit])
