"""RESX and RESW: which values are texts for people."""

import pytest

from transformer_cli.extensions.documents.resx import read_resx
from transformer_cli.process.errors import DataError

from .fake_translators import REVERSED, Identity, done, translated


def resources(*elements: str) -> str:
    body = "\n  ".join(elements)
    return f'<?xml version="1.0" encoding="utf-8"?>\n<root>\n  <!-- A comment -->\n  <resheader name="a"><value>a text</value></resheader>\n  {body}\n</root>\n'


ELEMENTS = {
    '<data name="a" xml:space="preserve">\n    <value>The &lt;b&gt;red&lt;/b&gt; car &amp; {0}</value>\n    <comment>a comment</comment>\n  </data>': (
        "The &lt;b&gt;red&lt;/b&gt; car &amp; {0}",
        "THE &lt;b&gt;RED&lt;/b&gt; CAR &amp; {0}",
    ),
    '<data name="b"><value>&amp;File</value></data>': ("&amp;File", "&amp;FILE"),
    '<data name="c"><value>One line.\nA second one.</value></data>': (
        "One line.\nA second one.",
        "ONE LINE.\nA SECOND ONE.",
    ),
    '<data name="d"><value><![CDATA[<b>Red</b> & blue]]></value></data>': (
        "<b>Red</b> & blue",
        "<b>RED</b> & BLUE",
    ),
    '<data name="e" type="System.Drawing.Size"><value>ten</value></data>': ("ten", "ten"),
    '<data name="f" mimetype="x"><value>ten</value></data>': ("ten", "ten"),
    '<data name="&gt;&gt;x.Name"><value>button</value></data>': ("button", "button"),
    '<data name="g"><value>Brand</value><comment>{Locked}</comment></data>': ("Brand", "Brand"),
    '<data name="l"><value>The red dog and the dogs</value><comment>{Locked="dog", "The red"} a brand</comment></data>': (
        "The red dog and the dogs",
        "The red dog AND THE DOGS",
    ),
    '<data name="m"><value>The red dog</value><comment>{Locked=qps-ploc}</comment></data>': (
        "The red dog",
        "THE RED DOG",
    ),
    '<data name="h"><value/></data>': ("<value/>", "<value/>"),
    '<data name="i"><value>file_name</value></data>': ("file_name", "file_name"),
    '<metadata name="j"><value>True text</value></metadata>': ("True text", "True text"),
}


def test_values_without_a_type_are_translated() -> None:
    text = resources(*ELEMENTS)
    wanted = resources(*(raw.replace(*change) for raw, change in ELEMENTS.items()))
    assert translated(read_resx(text.encode())) == wanted


def test_tags_move_with_their_words_and_nothing_else_changes() -> None:
    text = resources(*ELEMENTS).replace("\n", "\r\n")
    assert "{0} &amp; CAR &lt;b&gt;RED&lt;/b&gt; THE" in translated(read_resx(text.encode()), REVERSED)
    assert done(read_resx(text.encode()), Identity()).data == text.encode()


def test_another_file_is_refused() -> None:
    with pytest.raises(DataError, match="its root is <html>"):
        read_resx(b"<html/>")
