"""Write pairs of English and French once more, with other names and numbers, so that a model learns to copy what it has never seen.

python examples/other_names.py SOURCE TARGET OUTPUT [--copies 2] [--number-copies 6] [--seed 1]

A corpus of everyday sentences has few names (a few dozen, of which Tom and Mary stand in most lines) and hardly a number. A small
model then knows these, and writes another name in place of one that it has not read. Each pair whose English side has one of the
names in NAMES exactly once, with its counterpart on the French side, is written again with another name of the same kind; each pair
with one number on both sides, with another number. OUTPUT.en and OUTPUT.fr hold the new pairs; a pair with neither is not written.
"""

import argparse
import gzip
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

WOMEN = """
Agnes Aisha Alice Alicia Amina Ana Andrea Anita Anja Anna Anne Astrid Ayumi Barbara Beatrice Birgit Bianca Camila
Carla Carmen Carol Catarina Cecilia Chiara Chloe Christine Clara Claudia Daniela Deborah Diana Dora Elena Elisa
Elizabeth Ella Emily Emma Erika Esther Eva Fatima Fiona Francesca Frida Gabriela Giulia Gloria Grace Greta Hannah
Helen Helga Ines Ingrid Irene Iris Isabella Jana Jane Jasmine Jessica Johanna Judith Julia Karen Karin Katarina Kate
Katja Keiko Laila Lara Laura Lea Leila Lena Linda Lisa Lucia Lucy Luisa Maja Margaret Maria Marina Marta Martina Mei
Melanie Mia Michelle Mira Monica Nadia Naomi Natasha Nina Nora Olga Olivia Paola Patricia Paula Petra Priya Rachel
Rebecca Rita Rosa Ruth Sabine Samira Sandra Sara Sarah Silvia Simone Sofia Sonja Stella Susan Svetlana Tamara Tanja
Tatiana Teresa Tina Ursula Valentina Vera Victoria Virginia Wanda Yasmin Yoko Yuki Zara Zoe
"""
MEN = """
Aaron Abdul Adam Ahmed Alan Albert Aldo Alessandro Alex Alfredo Ali Amir Andrew Anton Antonio Arthur Benjamin
Bernard Boris Brian Bruno Carlos Charles Chen Christian Daniel David Dennis Diego Dieter Dmitri Edgar Eduardo Emil
Enrico Eric Ernesto Fabio Felix Fernando Filip Francisco Frank Franz Fred Gabriel George Gerald Giorgio Giovanni
Gustav Hans Harry Hassan Henrik Henry Hiroshi Hugo Ibrahim Igor Ivan Jack Jakob James Jan Javier Jens Joel Johann
Jonas Jorge Jose Juan Karl Kenji Kevin Klaus Kurt Lars Leo Leonard Lorenzo Luca Lucas Luigi Luis Manuel Marco Mario
Mark Martin Mateo Matteo Max Michael Miguel Mohammed Nathan Nicolas Niklas Nikolai Olaf Oliver Omar Oscar Otto Pablo
Paolo Patrick Paul Pedro Peter Philip Pietro Raj Ralph Ramon Ricardo Richard Robert Roberto Roger Roman Samuel
Sebastian Sergio Simon Stefan Steve Sven Takeshi Thomas Tim Tobias Tony Umberto Victor Viktor Vincent Vladimir
Walter Wei Werner William Wolfgang Xavier Yusuf
"""
TOWNS = """
Amsterdam Atlanta Baltimore Bangkok Belfast Belgrade Berlin Birmingham Bilbao Bonn Bratislava Brighton Budapest
Calgary Cardiff Chicago Cleveland Dallas Denver Detroit Dortmund Dublin Glasgow Graz Helsinki Houston Istanbul Kobe
Kyoto Leeds Leipzig Liverpool Ljubljana Madrid Malaga Manchester Melbourne Miami Milan Montevideo Mumbai Munich
Nagoya Nairobi Osaka Oslo Ottawa Oxford Perth Pittsburgh Porto Prague Riga Rome Rotterdam Santiago Sarajevo Seattle
Sofia Stockholm Stuttgart Sydney Tallinn Tokyo Toronto Trieste Turin Utrecht Vancouver Vilnius Wellington Zagreb
"""

NAMES = {
    **dict.fromkeys([("Tom", "Tom"), ("John", "John"), ("Bill", "Bill"), ("Jim", "Jim"), ("Ken", "Ken")], MEN.split()),
    **dict.fromkeys([("Mary", "Mary"), ("Mary", "Marie"), ("Jane", "Jane"), ("Lucy", "Lucy")], WOMEN.split()),
    **dict.fromkeys(
        [("Boston", "Boston"), ("Chicago", "Chicago"), ("Berlin", "Berlin"), ("Sydney", "Sydney")], TOWNS.split()
    ),
}
"""(English, French) -> what may stand in its place, on both sides alike."""

NUMBER = re.compile(r"(?<![\w.,:$£€])\d{1,4}(?![\w:]|[.,]\d)")
# French writes d'Anna and qu'Anna.
_ELISION = re.compile(r"\b([dD]|[qQ]u|[jJ]usqu|[lL]orsqu|[pP]uisqu)e (?=[AEIOU])")


def with_other_names(source: str, target: str, draw: random.Random) -> tuple[str, str]:
    """The pair with each of its names replaced; the same pair if there is none."""
    inserted = set[str]()
    for (english, french), others in NAMES.items():
        if english in inserted:
            continue
        if all(len(re.findall(rf"\b{name}\b", text)) == 1 for name, text in ((english, source), (french, target))):
            other = draw.choice(others)
            if other in source or other in target:
                continue
            inserted.add(other)
            source = re.sub(rf"\b{english}\b", other, source)
            target = _ELISION.sub(r"\1'", re.sub(rf"\b{french}\b", other, target))
    return source, target


def with_other_number(source: str, target: str, draw: random.Random) -> tuple[str, str]:
    """The pair with its number replaced by one of as many digits; the same pair if both sides do not have the same single one."""
    found = NUMBER.findall(source)
    if len(found) != 1 or found[0] == "1" or NUMBER.findall(target) != found:
        return source, target
    digits = len(found[0])
    other = str(draw.randint(max(2, 10 ** (digits - 1)), 10**digits - 1))
    return NUMBER.sub(other, source), NUMBER.sub(other, target)


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file, which may be compressed with gzip."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\r\n")


def main() -> None:
    """Write the pairs with other names, and those with other numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--copies", type=int, default=2, help="of each pair with a name")
    parser.add_argument("--number-copies", type=int, default=6, help="of each pair with a number")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    written = dict[tuple[str, str], None]()
    for pair in zip(lines(given.source), lines(given.target), strict=True):
        for change, copies in ((with_other_names, given.copies), (with_other_number, given.number_copies)):
            for _ in range(copies):
                changed = change(*pair, draw)
                if changed != pair:
                    written.setdefault(changed)
    for side, ending in ((0, "en"), (1, "fr")):
        path = given.output.with_name(f"{given.output.name}.{ending}")
        path.write_text("".join(f"{pair[side]}\n" for pair in written), encoding="utf-8", newline="\n")
    sys.stdout.write(f"{len(written)} pairs\n")


if __name__ == "__main__":
    main()
