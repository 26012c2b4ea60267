"""XLIFF 1.2 and 2: which units get a translation, their states, and everything else byte for byte."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.segments import Markup, Role, plain_text
from transformer_cli.extensions.documents.strings import CODES_OF_MESSAGE
from transformer_cli.extensions.documents.xliff import read_xliff
from transformer_cli.process.errors import DataError

from .fake_translators import REVERSED, UPPER, Identity, WordByWord, done, translated

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'


def xliff(*units: str, attributes: str = 'source-language="en" target-language="it"') -> str:
    body = "\n".join(f"    {unit}" for unit in units)
    return (
        f'{HEAD}  <file original="a.txt" datatype="plaintext" {attributes}><body>\n{body}\n  </body></file>\n</xliff>\n'
    )


def unit(source: str, target: str = "", attributes: str = "") -> str:
    return f'<trans-unit id="1"{attributes}><source>{source}</source>{target}</trans-unit>'


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ('<target xml:lang="it"/>', '<target xml:lang="it" state="translated">THE CAR</target>'),
        (
            "<target state='new' state-qualifier=\"exact-match\" xml:space = 'preserve' ></target>",
            "<target xml:space = 'preserve' state=\"translated\">THE CAR</target>",
        ),
    ],
)
def test_a_target_keeps_its_attributes_but_those_of_its_old_translation(target: str, written: str) -> None:
    assert written in translated(read_xliff(xliff(unit("The car", target)).encode()))


@pytest.mark.parametrize("version", ["1.2", "2.0"])
def test_a_version_that_is_not_named_is_known_by_its_elements(version: str) -> None:
    text = xliff_2(unit_2(segment("The car"))) if version == "2.0" else xliff(unit("The car"))
    named = f'<xliff version="{version}"'
    assert named in text
    with_version, without = (
        done(read_xliff(each.encode()), UPPER).data.decode() for each in (text, text.replace(named, "<xliff", 1))
    )
    assert "THE CAR" in without
    assert without == with_version.replace(named, "<xliff", 1)


@pytest.mark.parametrize("version", ["1.2", "2.0"])
def test_tags_in_a_cdata_section_move_with_their_words(version: str) -> None:
    source = "<![CDATA[The <b>red</b> car & <i>more</i>]]>"
    text = xliff(unit(source)) if version == "1.2" else xliff_2(unit_2(segment(source)))
    result = translated(read_xliff(text.encode()), REVERSED)
    assert "><![CDATA[<i>MORE</i> & CAR <b>RED</b> THE]]></target>" in result


def test_another_version_is_to_be_saved_as_one_that_is_read() -> None:
    with pytest.raises(DataError, match=r"this is XLIFF 3\.0; 1\.2 and 2 are read") as caught:
        read_xliff(b'<xliff version="3.0"/>')
    assert "save it as XLIFF 1.2 or 2" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("given_unit", "target"),
    [
        (unit("Good day."), '<target state="translated">GOOD DAY.</target>'),
        (unit("Good day.", "<target/>"), '<target state="translated">GOOD DAY.</target>'),
        (
            unit("Good day.", '<target state="new">Good day.</target>'),
            '<target state="translated">GOOD DAY.</target>',
        ),
        (unit("Good day.", "<target>Buongiorno.</target>"), "<target>Buongiorno.</target>"),
        (unit("Good day.", "<target/>", ' translate="no"'), "<target/>"),
        (unit("Good day.", "<target/>", ' approved="yes"'), "<target/>"),
        (unit("12.50", "<target/>"), "<target/>"),
        (
            unit('A <g id="1">red</g> car<x id="2"/>, &lt;b&gt; and <ph id="3">%s</ph>.'),
            '<target state="translated">A <g id="1">RED</g> CAR<x id="2"/>, &lt;b&gt; AND <ph id="3">%s</ph>.</target>',
        ),
    ],
)
def test_a_unit_gets_a_translation_if_it_has_none(given_unit: str, target: str) -> None:
    text = xliff(given_unit, unit("Yes.", "<target>Sì.</target>"))
    result = translated(read_xliff(text.encode()))
    [found] = re.findall(r"<target[^>]*/>|<target.*?</target>", result.split("</trans-unit>")[0])
    assert found == target
    # Without the targets, nothing else has changed.
    without = re.compile(r"<target[^>]*?/>|<target.*?</target>")
    assert without.sub("", result) == without.sub("", text)


def test_tags_move_with_their_words() -> None:
    text = xliff(unit('A <g id="1">red</g> car<x id="2"/>'))
    result = translated(read_xliff(text.encode()), REVERSED)
    assert 'CAR<x id="2"/> <g id="1">RED</g> A</target>' in result or (
        'CAR <g id="1">RED</g> A<x id="2"/></target>' in result
    )


def test_a_new_target_stands_on_a_line_of_its_own_if_the_source_does() -> None:
    text = xliff("<trans-unit id='1'>\n      <source>Hello</source>\n    </trans-unit>")
    result = translated(read_xliff(text.encode()))
    assert '<source>Hello</source>\n      <target state="translated">HELLO</target>\n    <' in result


def test_prefixes_of_the_namespace_are_kept() -> None:
    text = (
        '<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2"><x:file source-language="en">'
        '<x:body><x:trans-unit id="1"><x:source>Hello</x:source></x:trans-unit></x:body></x:file></x:xliff>'
    )
    result = translated(read_xliff(text.encode()))
    assert '<x:target state="translated">HELLO</x:target>' in result
    assert '<x:file target-language="it" source-language="en">' in result
    etree.fromstring(result.encode())


def test_a_template_that_names_its_source_language_twice_gets_the_target_language() -> None:
    twice = 'source-language="en-US" target-language="en-US"'
    assert 'source-language="en-US" target-language="it"' in translated(
        read_xliff(xliff(unit("Red"), attributes=twice).encode())
    )
    assert ' srcLang="en" trgLang="it"' in translated(
        read_xliff(xliff_2(unit_2(segment("Red")), attributes=' srcLang="en" trgLang="en"').encode())
    )
    text = xliff(unit("Red"), unit("Dog", "<target>Dog</target>"), attributes=twice)
    with pytest.raises(DataError, match='target-language="en-US", but the model translates from en'):
        translated(read_xliff(text.encode()))


def test_a_file_of_other_languages_is_refused() -> None:
    text = xliff(unit("Hello"), attributes='source-language="en-US" target-language="fr"')
    with pytest.raises(DataError, match='target-language="fr", but the model translates from en'):
        translated(read_xliff(text.encode()))
    german = WordByWord(str.upper, languages=Direction("de", "fr"))
    with pytest.raises(DataError, match="source-language"):
        translated(read_xliff(text.encode()), german)


def test_a_translation_in_doubt_needs_review() -> None:
    lost = WordByWord(lambda word: word.upper() if word != "{name}" else "x")
    lost._translated = str.upper  # type: ignore[method-assign]
    result = translated(read_xliff(xliff(unit("Dear {name}, hello")).encode()), lost)
    assert 'state="needs-review-translation"' in result
    assert result.count("{name}") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html/>", "root is <html>"),
        ("<xliff/>", "XLIFF of no version"),
    ],
)
def test_other_files_are_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_xliff(text.encode())


PARTS = st.sampled_from(
    [
        "A word",
        " ",
        "é &amp; è",
        '<g id="1">in <x id="2"/>side</g>',
        "<mrk>m</mrk>",
        "<!-- c -->",
        '<bpt id="4">&lt;b></bpt>',
        "<it id='6'/>",
        ".",
    ]
)
UNITS = st.builds(
    unit,
    st.lists(PARTS, max_size=5).map("".join),
    st.sampled_from(["", "<target/>", "<target>x</target>", "\n<note>n</note>"]),
)


@pytest.mark.long
@given(st.lists(UNITS, max_size=4))
def test_equal_translations_keep_every_byte_and_others_all_tags(units: list[str]) -> None:
    text = xliff(*units, attributes='source-language="en" target-language="en"')
    assert translated(read_xliff(text.encode()), Identity()) == text
    it = text.replace('target-language="en"', 'target-language="it"')
    root = etree.fromstring(translated(read_xliff(it.encode()), REVERSED).encode())
    for trans_unit in root.iter("{*}trans-unit"):
        source, target = trans_unit.find("{*}source"), trans_unit.find("{*}target")
        if target is not None and target.get("state") == "translated":
            of_source, of_target = (
                [each.tag for each in side.iter() if isinstance(each.tag, str)][1:] for side in (source, target)
            )
            assert sorted(of_source) == sorted(of_target)


def test_a_target_gets_the_sentences_that_the_tool_has_marked() -> None:
    marked = '<seg-source><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two now.</mrk></seg-source>'
    result = translated(read_xliff(xliff(unit("One. Two now.", marked)).encode()), REVERSED)
    assert (
        '<target state="translated"><mrk mtype="seg" mid="1">ONE.</mrk> <mrk mtype="seg" mid="2">NOW. TWO</mrk></target>'
        in result
    )


def test_a_space_that_is_protected_divides_two_sentences() -> None:
    """So MadCap Lingo writes what stands between two marked sentences."""
    first, second = "The dog is big.", '<g id="1">Only the</g> cat sleeps.'
    mark = '<mrk mtype="seg" mid="{}">{}</mrk>'
    gap = '<mrk mtype="protected" mid="2"> </mrk>'
    sources = f"<seg-source>{mark.format(1, first)}{gap}{mark.format(3, second)}</seg-source>"
    text = xliff(unit(f"{first} {second}", sources))
    document = read_xliff(text.encode())
    assert all(
        piece.role is not Role.WORD for each in document.segments for piece in each.pieces if isinstance(piece, Markup)
    )
    found = translated(document)
    assert mark.format(1, "THE DOG IS BIG.") in found
    assert '<g id="1">ONLY THE</g> CAT SLEEPS.</mrk>' in found
    assert '<mrk mtype="protected" mid="2"></mrk> <mrk' in found


def test_a_protected_name_is_not_translated() -> None:
    text = xliff(unit('The <mrk mtype="protected">Red Hat</mrk> shop'))
    assert 'THE <mrk mtype="protected">Red Hat</mrk> SHOP</target>' in translated(read_xliff(text.encode()))


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ('<bpt id="1">&lt;b&gt;</bpt>', '<ept id="1">&lt;/b&gt;</ept>'),
        ('<bpt id="1" rid="7">&lt;b&gt;</bpt>', '<ept id="2" rid="7">&lt;/b&gt;</ept>'),
        ('<bx id="1"/>', '<ex id="1"/>'),
        ('<it id="1" pos="open">&lt;b&gt;</it>', '<it id="2" pos="close">&lt;/b&gt;</it>'),
    ],
)
def test_two_tags_that_belong_together_stay_around_their_words(start: str, end: str) -> None:
    source = f"I have a {start}red car{end} and a dog."
    found = translated(read_xliff(xliff(unit(source)).encode()), REVERSED)
    assert f"DOG. A AND {start}CAR RED{end} A HAVE I" in found


@pytest.mark.parametrize(
    "text",
    [
        xliff(unit("One dog.\n  Two cats.", attributes=' xml:space="preserve"')),
        xliff(unit("One dog.\n  Two cats.").replace("<source", '<source xml:space="preserve"')),
        xliff(unit("One dog.\n  Two cats.")).replace("<body", '<body xml:space="preserve"'),
        xliff(unit("One <g>dog.</g>\n  Two cats.")).replace("<file", '<file xml:space="preserve"'),
    ],
)
def test_white_space_that_has_a_meaning_stays(text: str) -> None:
    document = read_xliff(text.encode())
    assert document.segments[0].keeps_spaces
    assert re.search(r"<target[^>]*>ONE (<g>)?DOG\.(</g>)?\n", translated(document))
    default = text.replace("<source", '<source xml:space="default"').replace(
        '<source xml:space="default" xml:space="preserve"', '<source xml:space="default"'
    )
    assert not read_xliff(default.encode()).segments[0].keeps_spaces


def test_targets_that_are_no_translations_are_named(caplog: pytest.LogCaptureFixture) -> None:
    marks = '<target><mrk mtype="seg">Uno.</mrk> <mrk mtype="seg"></mrk></target>'
    document = read_xliff(xliff(unit("A dog.", "<target>A dog.</target>"), unit("One. Two.", marks)).encode())
    assert not document.segments
    assert "units with targets that are equal to their sources: 1 (the first is 1)" in caplog.text
    assert "units with targets in which some sentences are empty: 1" in caplog.text


def test_a_file_whose_units_all_have_targets_gets_no_target_language() -> None:
    text = xliff(
        '<trans-unit id="1"><source>key</source><target>A text</target></trans-unit>', attributes='source-language="en"'
    )
    assert translated(read_xliff(text.encode())) == text
    two = text.replace(
        "</file>",
        "</file>"
        + text[text.index("<file") : text.index("</file>")].replace("<target>A text</target>", "")
        + "</file>",
    )
    found = translated(read_xliff(two.encode()))
    assert found.count('target-language="it"') == 1
    assert found.index("A text") < found.index("target-language")


def test_tags_of_a_template_of_angular_stay_around_their_words() -> None:
    source = (
        'I read <x id="START_LINK"/>the <x id="START_LINK_1"/>red<x id="CLOSE_LINK"/> book<x id="CLOSE_LINK"/> again'
    )
    assert (
        'AGAIN <x id="START_LINK"/>BOOK <x id="START_LINK_1"/>RED<x id="CLOSE_LINK"/> THE<x id="CLOSE_LINK"/> READ I<'
        in translated(read_xliff(xliff(unit(source)).encode()), REVERSED)
    )


@pytest.mark.parametrize(
    "value",
    ['id="INTERPOLATION_1"', 'id="ICU"', 'id="PH"', 'id="n" equiv-text="{{ n }}"', 'id="n" equiv-text="this.n"'],
)
def test_a_value_in_a_template_takes_the_place_of_a_word(value: str) -> None:
    document = read_xliff(xliff(unit(f"You have <x {value}/> letters")).encode())
    assert f"LETTERS <x {value}/> HAVE YOU<" in translated(document, REVERSED)


@pytest.mark.parametrize(
    "line_break", ['<x id="LINE_BREAK" ctype="lb"/>', '<ph id="1" ctype="lb"/>', '<x id="1" ctype="pb"/>']
)
def test_a_line_break_divides_two_words(line_break: str) -> None:
    document = read_xliff(xliff(unit(f"One dog{line_break}Two cats")).encode())
    assert plain_text(document.segments[0].pieces) == "One dog Two cats"
    assert f"ONE DOG{line_break} TWO CATS<" in translated(document)
    value = '<x id="INTERPOLATION"/>'
    document = read_xliff(xliff(unit(f"One dog {value}{line_break}Two cats")).encode())
    assert f"ONE DOG {value}{line_break} TWO CATS<" in translated(document)


def test_a_tag_that_stands_for_one_of_the_page_is_no_value() -> None:
    document = read_xliff(xliff(unit('You have<x id="n" equiv-text="&lt;img&gt;"/> letters')).encode())
    assert plain_text(document.segments[0].pieces) == "You have letters"


def xliff_2(*units: str, attributes: str = ' srcLang="en" trgLang="it"', version: str = "2.0") -> str:
    body = "\n    ".join(units)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="{version}" xmlns="urn:oasis:names:tc:xliff:document:2.0"{attributes}>\n  <file id="f">\n    {body}\n  </file>\n</xliff>\n'


def segment(source: str, target: str = "", attributes: str = "") -> str:
    return f"<segment{attributes}><source>{source}</source>{target}</segment>"


def unit_2(*segments: str, attributes: str = "") -> str:
    return f'<unit id="u"{attributes}><notes><note>A note</note></notes>{"".join(segments)}</unit>'


def target_of(source: str, order: WordByWord = REVERSED, data: str = "") -> str:
    kept = f"<originalData>{data}</originalData>" if data else ""
    text = xliff_2(f'<unit id="u">{kept}{segment(source)}</unit>')
    [found] = re.findall(r"<target>(.*?)</target>", translated(read_xliff(text.encode()), order))
    return str(found)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize(
    ("given_segment", "wanted"),
    [
        (segment("Good day."), segment("Good day.", "<target>GOOD DAY.</target>", ' state="translated"')),
        (segment("Good day.", "<target/>"), segment("Good day.", "<target>GOOD DAY.</target>", ' state="translated"')),
        (
            segment("Good day.", '<target xml:lang="it" order="2" />', ' id="s" state="initial" subState="my:x"'),
            segment("Good day.", '<target xml:lang="it" order="2">GOOD DAY.</target>', ' id="s" state="translated"'),
        ),
        (
            segment("Good day.", "<target>x</target>", " state='initial'"),
            segment("Good day.", "<target>GOOD DAY.</target>", ' state="translated"'),
        ),
        (segment("Good day.", "<target>Ciao.</target>"), segment("Good day.", "<target>Ciao.</target>")),
        (
            segment("Good day.", "<target>Ciao.</target>", ' state="final"'),
            segment("Good day.", "<target>Ciao.</target>", ' state="final"'),
        ),
        (
            segment("Good day.", "<target/>", ' state="reviewed"'),
            segment("Good day.", "<target/>", ' state="reviewed"'),
        ),
        (segment("12"), segment("12")),
        ("<ignorable><source> and </source></ignorable>", "<ignorable><source> and </source></ignorable>"),
    ],
)
def test_a_segment_of_xliff_2_gets_a_target_if_it_has_none(given_segment: str, wanted: str, version: str) -> None:
    other = segment("Yes.", "<target>S\u00ec.</target>")
    text = xliff_2(unit_2(given_segment, other), version=version)
    assert translated(read_xliff(text.encode())) == xliff_2(unit_2(wanted, other), version=version)


def test_several_segments_of_a_unit_each_get_their_target() -> None:
    gap = "<ignorable><source> </source></ignorable>"
    text = xliff_2(
        unit_2(segment("One red car."), gap, segment("Two.", "<target>Due.</target>"), gap, segment("Three."))
    )
    document = read_xliff(text.encode())
    assert [each.place for each in document.segments] == ["unit u, segment 1", "unit u, segment 3"]
    found = translated(document)
    assert re.findall(r"<target>(.*?)</target>", found) == ["ONE RED CAR.", "Due.", "THREE."]


def test_translate_yes_inside_of_no_counts_in_version_1_2_as_well() -> None:
    units = "".join(
        f'<trans-unit id="{number}"{given}><source>{text}</source></trans-unit>'
        for number, (text, given) in enumerate(
            {"One.": "", "Two.": ' translate="yes"', "Three.": ' translate="no"'}.items()
        )
    )
    group = f'<group translate="no">{units}<group translate="yes">{units}</group></group>{units}'
    text = (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        f'<file source-language="en" target-language="it" datatype="plaintext" original="a"><body>{group}</body></file></xliff>'
    )
    found = translated(read_xliff(text.encode()))
    assert re.findall(r"<target[^>]*>(.*?)</target>", found) == ["TWO.", "ONE.", "TWO.", "ONE.", "TWO."]


def test_translate_no_counts_for_all_inside_unless_it_is_yes_there() -> None:
    no, yes = ' translate="no"', ' translate="yes"'
    text = xliff_2(
        unit_2(segment("One."), attributes=no),
        f'<group id="g"{no}>{unit_2(segment("Two."))}<group id="h">{unit_2(segment("Three."), attributes=yes)}</group></group>',
        unit_2(segment("Four.")),
    )
    found = translated(read_xliff(text.encode()))
    assert re.findall(r"<target>(.*?)</target>", found) == ["THREE.", "FOUR."]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ('The <pc id="1" dataRefStart="d1">red</pc> car', 'CAR <pc id="1" dataRefStart="d1">RED</pc> THE'),
        ('The <sc id="1"/>red<ec startRef="1"/> car', 'CAR <sc id="1"/>RED<ec startRef="1"/> THE'),
        ('The <mrk id="m" type="term">red</mrk> car', 'CAR <mrk id="m" type="term">RED</mrk> THE'),
        ('The <mrk id="m" translate="no">red</mrk> car', 'CAR <mrk id="m" translate="no">red</mrk> THE'),
        (
            'The <sm id="m" type="comment"/>red<em startRef="m"/> car',
            'CAR <sm id="m" type="comment"/>RED<em startRef="m"/> THE',
        ),
        ('You have <ph id="1"/> cars', 'CARS <ph id="1"/> HAVE YOU'),
        ('You have <ph id="1" dataRef="v"/> cars', 'CARS <ph id="1" dataRef="v"/> HAVE YOU'),
        (
            'Red <ph id="0" equiv="INTERPOLATION" disp="{{name}}"/> car',
            'CAR <ph id="0" equiv="INTERPOLATION" disp="{{name}}"/> RED',
        ),
        ("A &lt; 5 &amp; dogs", "DOGS &amp; 5 &lt; A"),
    ],
)
def test_codes_of_xliff_2_move_with_their_words(source: str, target: str) -> None:
    assert target_of(source, data='<data id="v">%d</data>' if "dataRef=" in source else "") == target


@pytest.mark.parametrize(
    "code", ['<ph id="1" type="fmt" subType="xlf:lb"/>', '<ph id="1" dataRef="b"/>', '<ph id="1" equiv="LINE_BREAK"/>']
)
def test_a_break_of_xliff_2_divides_two_words(code: str) -> None:
    data = '<data id="b">&lt;br/></data>'
    assert f"RED{code} CAR" in target_of(f"Red{code}car", UPPER, data) or f"RED {code}CAR" in target_of(
        f"Red{code}car", UPPER, data
    )


def test_a_translation_in_doubt_of_xliff_2_is_named_in_its_sub_state() -> None:
    lost = WordByWord()
    lost._translated = str.upper  # type: ignore[method-assign]
    text = xliff_2(unit_2(segment("Dear {name}, hello")))
    found = translated(read_xliff(text.encode()), lost)
    assert '<segment state="translated" subState="tfm:needs-review-translation">' in found


def test_the_languages_of_xliff_2_are_those_of_the_model() -> None:
    text = xliff_2(unit_2(segment("Red")), attributes=' srcLang="en-GB"')
    assert '<xliff trgLang="it" version' in translated(read_xliff(text.encode()))
    text = xliff_2(unit_2(segment("Red")), attributes=' srcLang="en" trgLang="fr"')
    with pytest.raises(DataError, match='trgLang="fr", but the model translates from en'):
        translated(read_xliff(text.encode()))


def test_white_space_of_xliff_2_stays_where_it_has_a_meaning() -> None:
    source = "One line.\nA second one."
    kept = xliff_2(unit_2(segment(source), attributes=' xml:space="preserve"'))
    assert "<target>ONE LINE.\nA SECOND ONE.</target>" in translated(read_xliff(kept.encode()))
    assert "<target>ONE LINE. A SECOND ONE.</target>" in translated(
        read_xliff(xliff_2(unit_2(segment(source))).encode())
    )


def test_prefixes_and_the_layout_of_xliff_2_stay() -> None:
    text = (
        '<x:xliff version="2.1" srcLang="en" trgLang="it" xmlns:x="urn:oasis:names:tc:xliff:document:2.0"><x:file id="f">'
        '<x:unit id="u">\n  <x:segment>\n    <x:source>Hello</x:source>\n  </x:segment></x:unit></x:file></x:xliff>'
    )
    wanted = text.replace("<x:segment>", '<x:segment state="translated">').replace(
        "</x:source>", "</x:source>\n    <x:target>HELLO</x:target>"
    )
    assert translated(read_xliff(text.encode())) == wanted
    assert done(read_xliff(text.encode()), WordByWord()).data == text.encode()


def test_targets_of_xliff_2_that_are_equal_to_their_sources_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    read_xliff(xliff_2(unit_2(segment("Red", "<target>Red</target>"))).encode())
    assert "targets that are equal to their sources: 1 (the first is u)" in caplog.text
    caplog.clear()
    read_xliff(xliff_2(unit_2(segment("Red", "<target>Red</target>", ' state="final"'))).encode())
    assert not caplog.text


def test_a_language_inside_the_value_of_another_attribute_stays() -> None:
    unit = '<file id="a"><unit id="1"><segment><source>Red</source></segment></unit></file>'
    text = f"""<xliff version="2.0" x=' trgLang="de"' xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en">{unit}</xliff>"""
    found = translated(read_xliff(text.encode()))
    assert found.startswith("""<xliff trgLang="it" version="2.0" x=' trgLang="de"'""")


def test_a_target_whose_every_sentence_is_empty_is_translated_into_its_marks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    marks = [f'<mrk mtype="seg" mid="{number}">{{}}</mrk>' for number in (1, 2)]
    source = "<seg-source>{} {}</seg-source>".format(
        *(mark.format(text) for mark, text in zip(marks, ("A dog.", "A cat."), strict=True))
    )
    for empty in (
        '<mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2"></mrk>',
        '<mrk mtype="seg" mid="1"><mrk mtype="x"/></mrk>',
    ):
        text = xliff(unit("A dog. A cat.", f"{source}<target>{empty}</target>"))
        result = translated(read_xliff(text.encode()))
        wanted = " ".join(mark.format(each) for mark, each in zip(marks, ("A DOG.", "A CAT."), strict=True))
        assert f'<target state="translated">{wanted}</target>' in result
    assert "sentences are empty" not in caplog.text
    # A tag that is no mark of a sentence is somebody's translation.
    kept = xliff(unit("A dog.", '<target><x id="1"/></target>'))
    assert translated(read_xliff(kept.encode())) == kept


def test_a_segment_of_xliff_2_whose_target_has_empty_marks_alone_is_translated() -> None:
    text = xliff_2(unit_2(segment('<mrk id="m">A dog.</mrk>', '<target><mrk id="m"/></target>')))
    assert '<target><mrk id="m">A DOG.</mrk></target>' in translated(read_xliff(text.encode()))


def test_texts_inside_codes_are_translated_in_the_target_alone() -> None:
    code = (
        '<ph id="1">&lt;img alt="<sub>The red house &amp; <g id="2">dog</g>.</sub>" title="<sub>A cat</sub>"&gt;</ph>'
    )
    result = translated(read_xliff(xliff(unit(f"I see {code} now.")).encode()), REVERSED)
    done_code = (
        '<ph id="1">&lt;img alt="<sub><g id="2">DOG</g>. &amp; HOUSE RED THE</sub>" title="<sub>CAT A</sub>"&gt;</ph>'
    )
    assert f"<source>I see {code} now.</source>" in result
    assert f"NOW. {done_code} SEE I</target>" in result
    # A code that begins a range, and a unit without other words.
    for source, target in (
        (
            '<bpt id="1">&lt;a title="<sub>A cat</sub>"&gt;</bpt>the dog<ept id="1">&lt;/a&gt;</ept> is',
            'IS <bpt id="1">&lt;a title="<sub>CAT A</sub>"&gt;</bpt>DOG THE<ept id="1">&lt;/a&gt;</ept>',
        ),
        ('<it id="1" pos="open"><sub>A cat</sub></it> 12', '<it id="1" pos="open"><sub>CAT A</sub></it> 12'),
        (
            '<ph id="1">x<sub>A <ph id="2">y<sub>red dog</sub></ph> cat</sub></ph>',
            '<ph id="1">x<sub>CAT <ph id="2">y<sub>DOG RED</sub></ph> A</sub></ph>',
        ),
    ):
        found = done(read_xliff(xliff(unit(source)).encode()), REVERSED)
        assert f'<target state="translated">{target}</target>' in found.data.decode()
        assert found.num_segments == 1
    assert "<target" not in translated(read_xliff(xliff(unit('<ph id="1"><sub>12</sub></ph>')).encode()))


def test_a_text_inside_a_code_of_a_message_is_named() -> None:
    source = '{n, plural, other {<ph id="1">x<sub>A cat</sub></ph> dogs}}'
    found = done(read_xliff(xliff(unit(source)).encode()))
    assert '{n, plural, other {<ph id="1">x<sub>A cat</sub></ph> DOGS}}' in found.data.decode()
    assert [doubt.reason for doubt in found.doubts] == [CODES_OF_MESSAGE]


@pytest.mark.parametrize(
    ("source", "of_file", "keeps"),
    [
        ("One dog:\n\n - two cats\nthree", 'datatype="plaintext"', True),
        ("One dog:\r\ntwo cats", 'datatype="resx"', True),
        ("One dog:\n      two cats", 'datatype="plaintext"', False),
        ("One dog\n   ", 'datatype="plaintext"', False),
        ("One dog:\ntwo cats", 'datatype="html"', False),
        ("One dog:\ntwo cats", 'datatype="plaintext" original="ng2.template"', False),
    ],
)
def test_lines_of_plain_text_that_begin_at_the_edge_stay_lines(source: str, of_file: str, keeps: bool) -> None:
    text = re.sub(r'(?:datatype|original)="[^"]*" ?', "", xliff(unit(source))).replace("<file ", f"<file {of_file} ")
    [segment] = read_xliff(text.encode()).segments
    assert segment.keeps_spaces is keeps


def test_tags_written_as_text_move_with_their_words_and_divide_no_word() -> None:
    assert target_of("An &lt;b&gt;un&lt;/b&gt;happy dog&amp;#39;s") == "DOG&amp;#39;S &lt;b&gt;UNHAPPY&lt;/b&gt; AN"
