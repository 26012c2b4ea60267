"""TMX: units in one language get a translation, and everything else stays byte for byte."""

import pytest
from lxml import etree

from transformer_cli.extensions.documents.formats import ReadingOptions
from transformer_cli.extensions.documents.tmx import read_tmx
from transformer_cli.process.errors import DataError

from .fake_translators import REVERSED, Identity, translated

TMX = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en-US" datatype="plaintext"/><body>
  <tu tuid="1">
    <tuv xml:lang="en-US"><seg>Press <bpt i="1">&lt;b></bpt>Start<ept i="1">&lt;/b></ept> &amp; wait.</seg></tuv>
  </tu>
  <tu><tuv xml:lang="en"><seg>Done</seg></tuv><tuv xml:lang="it"><seg>Fatto</seg></tuv></tu>
  <tu><tuv xml:lang="de"><seg>Fertig</seg></tuv></tu>
  <tu><tuv xml:lang="en"><seg>12</seg></tuv></tu>
  <tu srclang="*all*"><tuv lang="fr"><seg>A <hi>big</hi> day</seg></tuv></tu>
</body></tmx>
"""


def test_units_in_the_source_language_get_a_variant() -> None:
    result = translated(read_tmx(TMX.encode()))
    first = (
        '\n    <tuv xml:lang="it"><seg>PRESS <bpt i="1">&lt;b></bpt>START<ept i="1">&lt;/b></ept>'
        " &amp; WAIT.</seg></tuv>"
    )
    last = '<tuv xml:lang="it"><seg>A <hi>BIG</hi> DAY</seg></tuv>'
    assert result.replace(first, "").replace(last, "") == TMX
    assert result.count(first) == result.count(last) == 1
    etree.fromstring(result.encode())


@pytest.mark.parametrize(
    ("others", "written"),
    [
        (["it-IT"], "it-IT"),
        (["it", "it-CH", "it-CH"], "it-CH"),
        (["it", "it", "it-CH"], "it"),
        (["fr-FR", "fr-FR"], "it"),
        ([], "it"),
    ],
)
def test_a_new_variant_is_in_the_language_as_the_others_write_it(others: list[str], written: str) -> None:
    units = "".join(
        f'<tu><tuv xml:lang="en-US"><seg>x</seg></tuv><tuv xml:lang="{code}"><seg>y</seg></tuv></tu>' for code in others
    )
    result = translated(
        read_tmx(TMX.replace('xml:lang="it"', 'xml:lang="de"').replace("</body>", f"{units}</body>").encode())
    )
    assert f'<tuv xml:lang="{written}"><seg>PRESS ' in result


def test_a_unit_in_another_language_than_that_of_the_model_stays(caplog: pytest.LogCaptureFixture) -> None:
    result = translated(read_tmx(TMX.encode(), ReadingOptions(language="en")))
    assert "PRESS" in result
    assert "BIG" not in result
    assert caplog.messages == ["1 unit(s) in fr stay: the model translates from en"]
    with pytest.raises(
        DataError, match="the units without a translation are in en-US, fr, but the model translates from de"
    ):
        read_tmx(TMX.encode(), ReadingOptions(language="de"))


def test_equal_translations_keep_every_byte() -> None:
    assert translated(read_tmx(TMX.encode()), Identity()) == TMX


@pytest.mark.parametrize("text", ["<xliff/>", "<tmx/>"])
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="this is no TMX file"):
        read_tmx(text.encode())


def test_a_file_without_a_header_is_refused_for_this_reason() -> None:
    with pytest.raises(DataError, match="it has no <header>") as refused:
        read_tmx(b'<tmx version="1.4"><body/></tmx>')
    assert 'srclang="en"' in str(refused.value.hint)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ('<bpt i="1">&lt;b></bpt>', '<ept i="1">&lt;/b></ept>'),
        ('<it pos="begin" x="1">&lt;b></it>', '<it pos="end" x="1">&lt;/b></it>'),
    ],
)
def test_two_tags_that_belong_together_stay_around_their_words(start: str, end: str) -> None:
    source = f"I have a {start}red car{end} and a dog."
    text = f'<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>{source}</seg></tuv></tu></body></tmx>'
    assert f"DOG. A AND {start}CAR RED{end} A HAVE I" in translated(read_tmx(text.encode()), REVERSED)


def test_a_line_break_divides_two_words() -> None:
    text = TMX.replace("Press <bpt", 'One dog<ph type="lb"/>Two cats <bpt')
    assert 'ONE DOG<ph type="lb"/> TWO CATS <bpt' in translated(read_tmx(text.encode()))


def test_texts_inside_codes_are_translated_in_the_new_variant() -> None:
    code = '<ph>&lt;img alt="<sub>A {}</sub>"></ph>'
    source = f'<tu><tuv xml:lang="en"><seg>See {code.format("cat")}.</seg></tuv></tu>'
    text = TMX.replace("</body>", f"{source}</body>")
    wanted = code.format("cat").replace("A cat", "CAT A")
    assert f"<seg>{wanted}. SEE</seg>" in translated(read_tmx(text.encode()), REVERSED)
    assert f"<seg>See {code.format('cat')}.</seg>" in translated(read_tmx(text.encode()), REVERSED)
