"""Subtitles: sentences through several cues, lines of 42 characters, times, tags, and everything that stays."""

import itertools
import re
import time
from collections.abc import Callable

import pytest
import srt
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.extensions.documents import subtitles as subtitles_module
from transformer_cli.extensions.documents.formats import (
    ReadingOptions,
    ReadingWatch,
    format_named,
    read_document,
)
from transformer_cli.extensions.documents.segments import TranslatedSegment, plain_text
from transformer_cli.extensions.documents.subtitles import (
    Subtitles,
    cues_of,
    read_srt,
    read_vtt,
    seconds_of,
    time_of,
)
from transformer_cli.extensions.documents.translation import translate_document
from transformer_cli.process.errors import DataError

from .fake_translators import EN_IT, REVERSED, UPPER, Identity, WordByWord, done, translated

FILM = """\
1
00:00:01,000 --> 00:00:03,000
We wanted to go to the sea
but the car

2
00:00:03,100 --> 00:00:05,000
<i>was in the garage.</i>

3
00:00:06,000 --> 00:00:08,000
- Are you ready?
- No, <b>not</b> yet.

4
00:00:20,000 --> 00:00:21,000 X1:1
{\\an8}Stop!
"""


def cues(data: bytes) -> list[srt.Subtitle]:
    return list(srt.parse(data.decode()))


def test_every_cue_keeps_its_share_of_the_sentence() -> None:
    found = done(read_srt(FILM.encode())).data.decode()
    assert found == (
        "1\n00:00:01,000 --> 00:00:03,000\nWE WANTED TO GO TO THE SEA BUT THE CAR\n\n"
        "2\n00:00:03,100 --> 00:00:05,000\n<i>WAS IN THE GARAGE.</i>\n\n"
        "3\n00:00:06,000 --> 00:00:08,000\n- ARE YOU READY?\n- NO, <b>NOT</b> YET.\n\n"
        "4\n00:00:20,000 --> 00:00:21,000 X1:1\n{\\an8}STOP!\n"
    )


def test_a_sentence_is_translated_whole() -> None:
    found = cues(done(read_srt(FILM.encode()), REVERSED).data)
    assert found[0].content.startswith("GARAGE. THE IN WAS CAR")
    assert found[1].content.endswith("TO WANTED WE</i>")


def test_a_long_translation_gets_two_lines_of_42_and_more_cues() -> None:
    film = FILM.replace("00:00:03,000", "00:00:08,000").replace(
        "00:00:03,100 --> 00:00:05", "00:00:08,100 --> 00:00:15"
    )
    film = film.replace("00:00:06,000 --> 00:00:08", "00:00:16,000 --> 00:00:18")
    longer = WordByWord(lambda word: re.sub(r"(?=\W*$)", "abcdefghijkl", word, count=1))
    before, after = cues(film.encode()), cues(done(read_srt(film.encode()), longer).data)
    assert len(after) > len(before)
    assert [cue.index for cue in after] == list(range(1, len(after) + 1))
    for cue in after:
        lines = cue.content.replace("<i>", "").replace("</i>", "").split("\n")
        assert len(lines) <= 2
        assert all(len(line) <= 42 for line in lines) or lines[0].startswith("-")
    for earlier, later in itertools.pairwise(after):
        assert earlier.start < earlier.end <= later.start
    assert after[0].start == before[0].start
    assert after[-1].end == before[-1].end
    assert after[-1].content == "{\\an8}Stopabcdefghijkl!"


def test_web_vtt_keeps_notes_settings_voices_and_references() -> None:
    text = (
        "WEBVTT - a title\n\nNOTE a note\nmore\n\nSTYLE\n::cue { color: red }\n\nintro\n"
        "01:02.000 --> 01:04.500 align:left\n<v Anna>Fish &amp; chips are <c.loud>very</c> good.\n\n"
        "00:01:05.000 --> 00:01:06.000\n<v Tom>Yes\n<v Anna>No\n"
    )
    wanted = text.replace("Fish &amp; chips are <c.loud>very</c> good.", "FISH &amp; CHIPS ARE <c.loud>VERY</c> GOOD.")
    wanted = wanted.replace(">Yes", ">YES").replace(">No\n", ">NO\n")
    assert done(read_vtt(text.encode())).data.decode() == wanted


TEXTS = st.lists(
    st.sampled_from(
        ["Hello there.", "one", "two words", "<i>", "</i>", "\n", "- ", "12", "{\\an8}", "a < b", "...", " "]
    ),
    min_size=1,
    max_size=8,
).map(" ".join)


@pytest.mark.long
@given(
    st.lists(st.tuples(TEXTS, st.integers(1, 6)), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_an_identity_translation_gives_identical_bytes_and_another_one_all_cues(
    film: list[tuple[str, int]], end: str, is_vtt: bool
) -> None:
    text, seconds = "WEBVTT\n\n" if is_vtt else "", 0
    for number, (given_content, duration) in enumerate(film, 1):
        content = re.sub(r"\n\s*\n", "\n", f"x\n{given_content}")  # a blank line ends a cue
        times = f"{time_of(seconds, '00:00:00.000')} --> {time_of(seconds + duration, '00:00:00.000')}"
        text += f"{number}\n{times if is_vtt else times.replace('.', ',')}\n{content}\n\n"
        seconds += duration
    data = text.replace("\n", end).encode()
    read = read_vtt if is_vtt else read_srt
    assert translate_document(read(data), Identity()).data == data
    found = done(read(data), UPPER).data.decode()
    visible = "".join(found.replace("&LT;", "<").replace("&lt;", "<").split())
    assert "Hello" not in visible
    for tag in ("<i>", "</i>", "{\\an8}"):
        assert found.count(tag) >= text.count(tag)
    ends = [cue.end_seconds for cue in cues_of(found, ReadingWatch())]
    assert ends == sorted(ends)


@pytest.mark.parametrize("time", ["00:00:01,500", "01:02.003", "100:59:59.999", "0:00:00.000"])
def test_a_time_is_written_as_it_was(time: str) -> None:
    assert time_of(seconds_of(time), time) == time


def test_a_sound_and_a_song_are_lines_of_their_own() -> None:
    data = "1\n00:00:01,000 --> 00:00:04,000\n[door opens]\n\u266a la la \u266a\n".encode()
    assert done(read_srt(data), UPPER).data.decode().endswith("\n[DOOR OPENS]\n\u266a LA LA \u266a\n")


def test_a_broken_line_of_times_is_named_and_its_text_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = FILM.replace("00:00:06,000 --> 00:00:08,000", "00:00:06 -> 00:00:08,000 -->")
    found = done(read_srt(broken.encode())).data.decode()
    line = 1 + broken[: broken.index("00:00:06")].count("\n")
    assert caplog.messages == [
        f"line {line}: it is no line of two times such as 00:01:02,500 --> 00:01:04,000: "
        "the text up to the next times stays as it is"
    ]
    assert "- Are you ready?" in found
    assert "STOP!" in found
    caplog.clear()
    read_srt(FILM.encode())
    assert not caplog.messages


@pytest.mark.parametrize("sign", ["->", "--&gt;", "\u2192", "\u2014>", "-- >", "==>", "-", " "])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("read", [read_srt, read_vtt])
def test_times_with_another_sign_than_the_arrow_are_named(
    read: Callable[[bytes], Subtitles], place: int, sign: str, caplog: pytest.LogCaptureFixture
) -> None:
    head = "WEBVTT\n\n" if read is read_vtt else ""
    cues = [f"{at}\n00:00:0{at},000 {sign if at == place else '-->'} 00:00:0{at + 1},000\n" for at in range(3)]
    whole = head + "".join(f"{cue}uno {at}.\n\n" for at, cue in enumerate(cues))
    found = done(read(whole.encode())).data.decode()
    line = 1 + whole[: whole.index(cues[place])].count("\n") + 1
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"line {line}: it is no line of two times")
    for at, cue in enumerate(cues):
        assert f"{cue}{'uno' if at == place else 'UNO'} {at}.\n" in found


@pytest.mark.parametrize(
    "text",
    ["10:30 - 11:30 uno", "10:30 -> due", "- 10:30:00 uno", "10:30:00 - 11:30:00", "0:30, 0:40 uno", "uno > due"],
)
def test_times_of_day_in_a_cue_are_text(text: str, caplog: pytest.LogCaptureFixture) -> None:
    page = f"1\n00:00:01,000 --> 00:00:02,000\n{text}\ntre\n"
    assert done(read_srt(page.encode())).data.decode().endswith("TRE\n")
    assert not caplog.messages


@pytest.mark.parametrize("read", [read_srt, read_vtt])
def test_a_cue_that_ends_before_it_begins_is_named_and_stays(
    read: Callable[[bytes], Subtitles], caplog: pytest.LogCaptureFixture
) -> None:
    words = "uno due tre quattro cinque sei sette otto nove dieci " * 4
    page = (
        f"7\n00:00:05,000 --> 00:00:02,000\n{words}\n\nuno.\n\n"
        "8\n00:00:06,000 --> 00:00:06,000\ndue\n\n00:00:08,000 --> 00:00:07,999\ntre.\n"
    )
    head = "WEBVTT\n\n" if read is read_vtt else ""
    found = done(read(f"{head}{page}".encode())).data.decode()
    assert found.split() == f"{head}{page.upper()}".split()
    first = 2 + head.count("\n")
    end = "; its times stay, and players may not show it"
    assert caplog.messages == [
        f"line {first}: cue 7 ends before it begins: 00:00:05,000 --> 00:00:02,000{end}",
        f"line {first + 9}: a cue ends before it begins: 00:00:08,000 --> 00:00:07,999{end}",
    ]


@pytest.mark.parametrize(("read", "text"), [(read_srt, "hello\n\nno times\n"), (read_vtt, "hello\nthere\n")])
def test_a_file_without_times_is_refused(read: Callable[[bytes], object], text: str) -> None:
    """Its text would come back without a translation."""
    with pytest.raises(DataError, match="no line with two times") as refused:
        read(text.encode())
    assert "--format txt" in str(refused.value.hint)


@pytest.mark.parametrize(("read", "text"), [(read_srt, "\n"), (read_vtt, "WEBVTT\n\nNOTE hello\n")])
def test_a_file_without_cues_stays_as_it_is(read: Callable[[bytes], Subtitles], text: str) -> None:
    assert done(read(text.encode())).data.decode() == text


def film(*texts: str, times: str = "00:00:{:02d},000 --> 00:00:{:02d},000") -> str:
    """Cues of a second each, one after the other, with these texts."""
    return "\n".join(f"{at}\n{times.format(at, at + 1)}\n{text}\n" for at, text in enumerate(texts, 1))


def sentences(*texts: str) -> list[str]:
    """What is translated together."""
    return [
        "".join(piece for piece in each.pieces if isinstance(piece, str))
        for each in read_srt(film(*texts).encode()).segments
    ]


@pytest.mark.parametrize(
    "complete",
    [
        ("[laughs]", "yes, you are right."),
        ("(door closes)", "we go", "home."),
        ("the hotel is small", "[music]"),
        ("\u266a the music is", "beautiful \u266a", "\u266a I am happy", "where is it?"),
        ("the hotel is small", "ANNA: where is it?"),
        (">> the hotel is small", ">> where is it?"),
        ("the hotel is small -", "- Where is it?"),
        ("- the hotel is small", "- it is not"),
        ("CHAPTER ONE", "We were at home."),
        ("The hotel is small", "The station is old", "I am tired"),
        ("anna@example.org", "Where is the station?"),
        ("http://example.org", "the dog is big."),
        ("the address is", "anna@example.org", "Good night."),
        ("Anna", "Where is my brother?"),
        ("Rome, 1984", "The cat is small."),
        ("A big house", "The dog is big."),
    ],
)
def test_a_cue_that_is_complete_is_not_joined_with_the_next(complete: tuple[str, ...]) -> None:
    joined = {"we go": "home.", "\u266a the music is": "beautiful \u266a"}
    found = sentences(*complete)
    assert len(found) == len(complete) - len(joined.keys() & set(complete))
    shown = [cue.content for cue in cues(done(read_srt(film(*complete).encode()), REVERSED).data)]
    marks = re.compile(r"\[|\]|\(|\)|\u266a|>>|ANNA|^- ")
    assert [sorted(marks.findall(text.upper())) for text in shown] == [
        sorted(marks.findall(text.upper())) for text in complete
    ]


@pytest.mark.parametrize(
    "torn",
    [
        ("we wanted to see", "Anna in the garden."),
        ("ladies and gentlemen, -", "- let me introduce -", "- this man."),
        ("I want --", "to go home."),
        ("The man saw", "the house."),
        ("He was with", "Anna."),
        ("Dear Anna,", "The house is old."),
        ("The station of", "Rome is old."),
        ("Anna", "and Bob sleep."),
        ("We have", "3 dogs."),
        ("\u6211\u4eec", "\u5728\u5bb6\u3002"),
    ],
)
def test_the_cues_of_a_sentence_are_joined_and_keep_their_dashes(torn: tuple[str, ...]) -> None:
    assert len(sentences(*torn)) == 1
    assert "- -" not in sentences(*torn)[0]
    shown = [cue.content for cue in cues(done(read_srt(film(*torn).encode())).data)]
    assert shown == [text.upper() for text in torn]


@pytest.mark.parametrize(
    ("language", "torn", "is_one"),
    [
        ("de", ("Wir sehen heute", "Hunde und Katzen."), True),
        ("de", ("Rom", "Hunde schlafen."), False),
        ("en", ("We see today", "Hunde und Katzen."), False),
        ("en", ("Then at last", "I saw the house."), True),
        ("it", ("Then at last", "I saw the house."), False),
        ("it", ("La casa di", "Anna dorme."), True),
        (None, ("La casa di", "Anna dorme."), True),
    ],
)
def test_a_capital_letter_goes_on_where_the_language_says_so(
    language: str | None, torn: tuple[str, str], *, is_one: bool
) -> None:
    read = read_srt(film(*torn).encode(), ReadingOptions(language=language))
    assert len(read.segments) == 2 - is_one


def test_a_number_alone_is_no_part_of_a_sentence() -> None:
    assert sentences("1984", "the dog is big.") == ["the dog is big."]


def test_a_voice_goes_on_and_another_one_begins_a_sentence() -> None:
    film = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Anna>the hotel\n\n00:02.000 --> 00:03.000\n<v Anna>is small\n\n00:03.000 --> 00:04.000\n<v Bob>it is not"
    assert [plain_text(each.pieces) for each in read_vtt(film.encode()).segments] == ["the hotel is small", "it is not"]


@pytest.mark.parametrize("gap", ["\n", "\n\n", " \n", " \n \n"])
@pytest.mark.parametrize("before", ["Good morning.\n", ""])
def test_text_behind_a_blank_line_in_a_cue_is_translated(before: str, gap: str) -> None:
    given = f"1\n00:00:01,000 --> 00:00:02,000\n{before}{gap}Where is the station?\nWe go.\n\n2\n00:00:03,000 --> 00:00:04,000\nAll.\n"
    found = done(read_srt(given.encode())).data.decode()
    assert found == given.upper().replace("?\nWE", "? WE")
    vtt = "WEBVTT\n\nNOTE a\nb\n\n" + given.replace(",", ".").replace("\n2\n", "\nNOTE some\nwords\n\nname\n")
    expected = found.replace(",", ".").replace("\n2\n", "\nNOTE some\nwords\n\nname\n")
    assert done(read_vtt(vtt.encode())).data.decode() == "WEBVTT\n\nNOTE a\nb\n\n" + expected


def test_times_without_milliseconds_are_read_and_get_some_where_a_cue_is_divided() -> None:
    given = film("Good morning.", times="00:00:{:02d} --> 00:00:{:02d}")
    assert done(read_srt(given.encode())).data.decode() == given.upper()
    long = f"1\n00:00:00 --> 00:00:03\n{'many words ' * 20}\n"
    first, *_ = cues(done(read_srt(long.encode())).data)
    assert 0 < first.end.total_seconds() < 3
    vtt = done(read_vtt(f"WEBVTT\n\n{long}".encode())).data.decode()
    assert re.search(r"00:00:00\.000 --> 00:00:0\d\.\d{3}\n", vtt)


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_every_line_end_is_known_and_used_for_new_lines(end: str) -> None:
    given = f"1\n00:00:00,000 --> 00:00:09,000\n{'many words ' * 20}\n\n2\n00:00:20,000 --> 00:00:21,000\nAll.\n"
    expected = done(read_srt(given.encode())).data.decode()
    found = done(read_srt(given.replace("\n", end).encode())).data.decode()
    assert found == expected.replace("\n", end)
    vtt = f"WEBVTT\n\n{given}".replace("\n", end)
    assert "ALL." in done(read_vtt(vtt.encode())).data.decode()


def test_the_line_break_of_another_format_is_a_space() -> None:
    [cue] = cues(done(read_srt(film("where is\\Nthe station?").encode())).data)
    assert cue.content == "WHERE IS THE STATION?"


def test_the_times_of_words_stay_in_order() -> None:
    text = "WEBVTT\n\n00:00.000 --> 00:04.000\nwhere <00:01.000><c>is</c> <00:02.000><c>the</c> <00:03.000><c>station</c>\n"
    found = done(read_vtt(text.encode()), REVERSED).data.decode()
    assert re.findall(r"<[\d:.]+>", found) == ["<00:01.000>", "<00:02.000>", "<00:03.000>"]
    assert "STATION" in found


@given(st.text("a -\u2013\u2014\t\n\u00a0", max_size=8))
def test_the_dash_at_the_end_of_a_cue_is_the_first_that_only_white_space_follows(text: str) -> None:
    found = re.search(r"\s*(?:\s[-\u2013\u2014]|--|\u2014)\s*\Z", text)
    assert subtitles_module._start_of_last_dash(text) == (found and found.start())


@pytest.mark.parametrize(
    ("text", "reversed_"),
    [
        ("[DOOR OPENS]", "[OPENS DOOR]"),
        ("(soft music)", "(MUSIC SOFT)"),
        ("[DOOR OPENS] Who is there?", "[OPENS DOOR] THERE? IS WHO"),
        ("Hello [the dog laughs] my friend.", "HELLO [LAUGHS DOG THE] FRIEND. MY"),
        ("(he laughs) Good morning.", "(LAUGHS HE) MORNING. GOOD"),
        ("ANNA [whispering]: The dog is here.", "ANNA [WHISPERING]: HERE. IS DOG THE"),
        ("<i>[DOOR OPENS]</i>", "<i>[OPENS DOOR]</i>"),
    ],
)
def test_the_brackets_of_sounds_stay_around_them(text: str, reversed_: str) -> None:
    film = f"1\n00:00:01,000 --> 00:00:04,000\n{text}\n"
    assert cues(done(read_srt(film.encode()), REVERSED).data)[0].content == reversed_


@pytest.mark.parametrize(
    ("lines", "written"),
    [
        (
            ("<i>The big house is in</i>", "<i>the small garden.</i>"),
            "<i>GARDEN. SMALL THE</i>\n<i>IN IS HOUSE BIG THE</i>",
        ),
        (("<b>The cat</b>", "<i>is here.</i>"), "<b>HERE.</b>\n<i>IS CAT THE</i>"),
        (("<i>Who is it?</i>", "<i>I am here.</i>"), "<i>IT? IS WHO</i>\n<i>HERE. AM I</i>"),
        (
            ('{\\an8}<font color="#f00">The cat</font>', '<font color="#0f0">is here.</font>'),
            '{\\an8}<font color="#f00">HERE.</font>\n<font color="#0f0">IS CAT THE</font>',
        ),
        (("<i>The cat", "is here.</i>"), "<i>HERE. IS CAT THE</i>"),
    ],
)
def test_lines_in_tags_of_their_own_stay_lines(lines: tuple[str, str], written: str) -> None:
    film = "1\n00:00:01,000 --> 00:00:05,000\n" + "\n".join(lines) + "\n"
    assert cues(done(read_srt(film.encode()), REVERSED).data)[0].content == written
    assert done(read_srt(film.encode()), Identity()).data.decode() == film


def test_the_reading_of_a_ruby_stays_beside_its_base() -> None:
    film = "WEBVTT\n\n00:05.000 --> 00:06.000\nThe <ruby>big<rt>reading</rt></ruby> dog.\n"
    found = done(read_vtt(film.encode()), REVERSED).data.decode()
    assert found.endswith("\nDOG. <ruby>BIG<rt>reading</rt></ruby> THE\n")


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("2 is (<) less and (>) more", "2 IS (<) LESS AND (>) MORE"),
        ("a < b and <i>c</i> > d", "A < B AND <i>C</i> > D"),
        (r"This is\na new line\Nand this", "THIS IS A NEW LINE AND THIS"),
    ],
)
def test_signs_of_comparison_are_no_tags_and_breaks_of_other_formats_divide_words(line: str, written: str) -> None:
    film = f"1\n00:00:01,000 --> 00:00:09,000\n{line}\n"
    assert translated(read_srt(film.encode())) == film.replace(line, written)


@pytest.mark.parametrize("mark", [">> ", ">>", ">>> "])
def test_the_mark_of_a_new_speaker_stays_before_the_words(mark: str) -> None:
    film = f"1\n00:00:01,000 --> 00:00:02,000\n{mark}Where is\n\n2\n00:00:02,000 --> 00:00:04,000\nthe dog?\n"
    result = translated(read_srt(film.encode()), REVERSED)
    assert [cue.content.startswith(mark.strip()) for cue in srt.parse(result)] == [True, False]
    assert "DOG?" in result.splitlines()[2]
    page = f"WEBVTT\n\n00:01.000 --> 00:03.000\n{mark}Hello you\n".replace(">> ", "&gt;&gt; ")
    assert translated(read_vtt(page.encode()), REVERSED).endswith(
        page.split("\n")[3].replace("Hello you", "YOU HELLO\n")
    )


def test_the_lines_of_two_speakers_are_two_texts() -> None:
    film = "1\n00:00:01,000 --> 00:00:04,000\n>> Are you here?\n>> Yes I am.\n"
    assert ">> HERE? YOU ARE\n>> AM. I YES" in translated(read_srt(film.encode()), REVERSED)


@pytest.mark.parametrize(
    ("lines", "written"),
    [
        ("- Look here.\n<i>- Why now?</i>", "- HERE. LOOK\n<i>NOW? WHY -</i>"),
        ("- Look here.\n{\\i1}- Why now?{\\i0}", "- HERE. LOOK\n{\\i1}NOW? WHY -{\\i0}"),
        ("- Look here.\n<i>- Why</i> now?", "- HERE. LOOK\nNOW? <i>WHY -</i>"),
        ("<i>-</i> Look here.\n<i>-</i> Go away.", "<i>-</i> HERE. LOOK\n<i>-</i> AWAY. GO"),
        ("<c.a>- </c><c.b>Why now?</c>\n<c.a>- Go.</c>", "<c.a>- </c><c.b>NOW? WHY</c>\n<c.a>GO. -</c>"),
        ("The dog is\n<i>well-known</i> now.", "NOW. <i>WELL-KNOWN</i> IS DOG THE"),
    ],
)
def test_the_lines_of_two_speakers_with_dashes_in_tags_are_two_texts(lines: str, written: str) -> None:
    film = f"1\n00:00:01,000 --> 00:00:06,000\n{lines}\n"
    assert cues(done(read_srt(film.encode()), REVERSED).data)[0].content == written
    assert done(read_srt(film.encode()), Identity()).data.decode() == film


@pytest.mark.parametrize(
    ("lines", "written"),
    [
        ("ANNA: Yes.\nTOM: Oh no.", "YES. ANNA:\nNO. OH TOM:"),
        ("Anna: Yes.\nTom: Oh no.", "YES. ANNA:\nNO. OH TOM:"),
        ("Oh yes.\nTOM: Oh no.", "YES. OH\nNO. OH TOM:"),
        ("<i>ANNA:</i> Oh yes.\n<i>TOM:</i> Oh no.", "YES. OH <i>ANNA:</i>\nNO. OH <i>TOM:</i>"),
        ("ANNA: The dog\nis red.\nTOM: I see.", "RED. IS DOG THE ANNA:\nSEE. I TOM:"),
        ("He said the\nfollowing: I see.", "SEE. I FOLLOWING: THE SAID HE"),
        ("There is one\nThing: I see.", "SEE. I THING: ONE IS THERE"),
    ],
)
def test_the_words_behind_the_name_of_each_speaker_are_a_text(lines: str, written: str) -> None:
    film = f"1\n00:00:01,000 --> 00:00:06,000\n{lines}\n"
    found = done(read_srt(film.encode()), REVERSED).data
    assert [cue.content for cue in cues(found)] == [written]
    assert done(read_srt(film.encode()), Identity()).data.decode() == film


def test_seconds_may_have_one_digit() -> None:
    film = "1\n00:00:0,500 --> 00:00:2,000\nA dog.\n"
    assert translated(read_srt(film.encode())) == film.replace("A dog.", "A DOG.")


def test_a_file_with_a_byte_order_mark_is_not_taken_for_another_encoding() -> None:
    with pytest.raises(DataError, match="no line with two times"):
        read_document("A dog è qui".encode("utf-16"), format_named("srt"))


def test_a_hard_space_of_another_format_divides_words_in_srt() -> None:
    text = "1\n00:00:01,000 --> 00:00:09,000\nThe\\hline\\hof\\hC:\\home here\n"
    assert translated(read_srt(text.encode())).splitlines()[2] == "THE LINE OF C:\\home HERE"


ENGLISH = ["The dog is in the house.", "This is not the big cat.", "I have a book, and you do not.", "What do they do?"]
ITALIAN = [
    "Il cane \u00e8 nella casa.",
    "Questo non \u00e8 il gatto che ho.",
    "Io ho un libro, e tu non lo hai.",
    "Che cosa fanno?",
]


@pytest.mark.parametrize("number", [0, 1])
def test_of_cues_in_two_languages_only_the_lines_of_the_source_are_translated(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    pairs = [pair if number == 0 else pair[::-1] for pair in zip(ENGLISH * 3, ITALIAN * 3, strict=True)]
    data = film(*("\n".join(pair) for pair in pairs)).encode()
    written = done(read_srt(data, ReadingOptions(language="en"))).data.decode()
    assert all(text.upper() in written for text in ENGLISH)
    assert all(text in written for text in ITALIAN)
    assert "those in English are translated, and those in Italian stay" in caplog.text


@pytest.mark.parametrize(
    "texts", [[f"{a}\n{b}" for a, b in itertools.permutations(ENGLISH, 2)], ["I am here.\nIo sono qui."]]
)
def test_cues_of_two_lines_in_one_language_are_whole_texts(texts: list[str], caplog: pytest.LogCaptureFixture) -> None:
    [first, *_] = read_srt(film(*texts).encode()).segments
    assert plain_text(first.pieces) == texts[0]
    assert not caplog.messages


@pytest.mark.long
def test_many_lines_of_a_dialogue_in_one_cue_take_no_quadratic_time() -> None:
    times = []
    for number in (2_000, 8_000):
        document = read_srt(film("\n".join(["- The dog."] * number)).encode())
        translations = [TranslatedSegment(("IL CANE.",))] * number
        started_at = time.process_time()
        document.write(translations, EN_IT)
        times.append(time.process_time() - started_at)
    assert times[1] < 8 * times[0]


def test_a_word_behind_the_colon_of_a_sound_is_translated() -> None:
    """The colon and the word would be read as a name for programs, such as :name."""
    cue = "1\n00:00:01,000 --> 00:00:03,000\n(softly):Anna sleeps.\n"
    assert translated(read_srt(cue.encode())) == cue.replace("softly", "SOFTLY").replace("Anna sleeps", "ANNA SLEEPS")


MOVING_UP = """WEBVTT
Kind: captions
Language: en

00:00:00.160 --> 00:00:02.869 align:start position:0%
 
{0}

00:00:02.869 --> 00:00:02.879 align:start position:0%
{1}
 

00:00:02.879 --> 00:00:05.110 align:start position:0%
{1}
{2}

00:00:05.110 --> 00:00:05.120 align:start position:0%
{3}
 

00:00:05.120 --> 00:00:08.500 align:start position:0%
{3}
[Music]
"""


def test_lines_that_move_up_in_automatic_captions_are_translated_once() -> None:
    """The next cue shows each line again, above the new one; the times of its words are left out."""
    words = ("welcome<00:00:00.480><c> to</c>", "welcome to", "all<00:00:03.120><c> red</c><00:00:03.600><c> dogs</c>")
    data = MOVING_UP.format(*words, "all red dogs").encode()
    for translator, first, second in ((UPPER, "WELCOME TO", "ALL RED DOGS"), (REVERSED, "DOGS RED ALL", "TO WELCOME")):
        expected = MOVING_UP.format(first, first, second, second).replace("Language: en", "Language: it")
        assert translated(read_vtt(data), translator) == expected.replace("[Music]", "[MUSIC]")
    assert done(read_vtt(data), Identity()).data == data


def test_lines_that_move_up_in_srt_keep_their_cues() -> None:
    cue = "{}\n00:00:0{},000 --> 00:00:0{},000\n{}\n"
    texts = ["we go", "we go", "we go\nto the house", "to the house", "to the house\nof the dogs"]
    data = "\n".join(cue.format(at, at, at + 1, text) for at, text in enumerate(texts, 1))
    assert translated(read_srt(data.encode())) == "\n".join(
        cue.format(at, at, at + 1, text.upper()) for at, text in enumerate(texts, 1)
    )


def test_a_line_that_is_said_twice_is_no_line_that_moves_up() -> None:
    data = b"1\n00:00:01,000 --> 00:00:02,000\nGo home!\n\n2\n00:00:02,000 --> 00:00:03,000\nGo home!\nNow, I say!\n"
    assert read_srt(data).repeats == ()


@pytest.mark.parametrize(("given", "expected"), [("en", "it"), ("en-US", "it"), ("de", "de")])
def test_the_language_of_webvtt_becomes_that_of_the_translation(given: str, expected: str) -> None:
    data = f"WEBVTT\nKind: captions\nLanguage: {given}\n\n00:01.000 --> 00:02.000\nLanguage: en\n"
    assert f"Language: {expected}\n\n" in translated(read_vtt(data.encode()))
