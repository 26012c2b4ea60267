"""Files with the line ends of old Macs are read as others are, and keep them; a carriage return that is written as a reference stays one."""

import time

import pytest

from transformer_cli.extensions.documents.formats import ReadingOptions, format_named, read_document
from transformer_cli.extensions.documents.html import read_html
from transformer_cli.extensions.documents.properties import read_properties
from transformer_cli.extensions.documents.resx import read_resx

from .fake_translators import EN_IT, Identity, done, translated

FILES = {
    "properties": "# dog\na=The dog is big.\nb=The red \\\n  house is here.\n",
    "strings": '/* dog */\n"a" = "The dog is big.";\n"b" = "The cat";\n',
    "yaml": "a: The dog is big.\nb: |\n  The cat is small.\n  The house is red.\nc: >-\n  The garden\n  is here.\n",
    "json": '{"a": "The dog is big.",\n "b": "The cat is small."}\n',
    "csv": "en,x\nThe dog is big.,1\nThe cat is small.,2\n",
    "po": 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid ""\n"The cat is\\n"\n"small."\nmsgstr ""\n',
    "md": "---\ntitle: The big dog\n---\n\n# The house\n\nThe dog is big\nand old.\n\n- The cat\n- The car\n",
    "html": "<title>The house</title>\n<p>The dog is big\nand <b>old</b>.</p>\n<pre>\ncode\n</pre>\n",
    "srt": "1\n00:00:01,000 --> 00:00:04,000\nThe dog is\nbig.\n\n2\n00:00:05,000 --> 00:00:08,000\nThe cat.\n",
    "xliff": '<xliff version="1.2"><file source-language="en" target-language="it" datatype="plaintext"><body>\n'
    "<trans-unit><source>The cat\nis small.</source></trans-unit>\n</body></file></xliff>\n",
    "resx": '<root>\n<data name="a"><value>The cat\nis small.</value></data>\n</root>\n',
    "xcstrings": '{\n  "sourceLanguage" : "en",\n  "strings" : {\n    "The dog is big." : {\n\n    }\n  }\n}\n',
    "txt": "The dog is big.\n\nThe cat is small.\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_the_line_ends_of_old_macs_is_translated_as_any_other(name: str) -> None:
    options = ReadingOptions(language="en", target_language="it", columns=("en",) if name == "csv" else ())
    text = FILES[name]
    usual = done(read_document(text.encode(), format_named(name), options)).data.decode()
    old = text.replace("\n", "\r").encode()
    assert usual != text
    assert done(read_document(old, format_named(name), options)).data.decode() == usual.replace("\n", "\r")
    unchanged = Identity()
    unchanged.languages = EN_IT
    assert done(read_document(old, format_named(name), options), unchanged).data == old


@pytest.mark.parametrize("reference", ["&#13;", "&#xD;"])
def test_a_carriage_return_of_a_reference_is_no_line_end_of_the_file(reference: str) -> None:
    text = f'<root><data name="a"><value>The dog.{reference}&#10;The cat.</value></data></root>'
    assert "THE DOG.&#13;\nTHE CAT." in translated(read_resx(text.encode()))
    with_line_ends = text.replace("><", ">\r\n<").replace(f"{reference}&#10;", "\r\n")
    assert "THE DOG.\r\nTHE CAT." in translated(read_resx(with_line_ends.encode()))


def test_properties_in_utf_16_are_read_by_their_mark() -> None:
    data = "a=The dog \u20ac\n".encode("utf-16")
    assert done(read_properties(data)).data == "a=THE DOG \u20ac\n".encode("utf-16")


@pytest.mark.long
def test_many_anchors_in_a_row_take_no_quadratic_time() -> None:
    times = []
    for number in (1_500, 6_000):
        started_at = time.process_time()
        read_html(b"<p>The dog " + b'<a id="x"></a>' * number + b"is big.</p>")
        times.append(time.process_time() - started_at)
    assert times[1] < 8 * times[0]
