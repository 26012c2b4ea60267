import pytest

from tests.extensions.documents.fake_translators import REVERSED, Identity, done, translated
from transformer_cli.extensions.documents.html import read_html
from transformer_cli.extensions.documents.page_templates import PartKind, template_parts
from transformer_cli.extensions.documents.segments import plain_text


def upper(page: str) -> str:
    return translated(read_html(page.encode()))


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("{% if a < b %}Hello{% else %}Bye{% endif %}", "{% if a < b %}HELLO{% else %}BYE{% endif %}"),
        (
            "@if (items.length > 0 && f(x, g(y))) {\n <p>Many</p>\n} @else {\n None\n}\n",
            "@if (items.length > 0 && f(x, g(y))) {\n <p>MANY</p>\n} @else {\n NONE\n}\n",
        ),
        (
            "@for (item of items; track item.id) {\n Red\n} @empty {\n Nothing\n}",
            "@for (item of items; track item.id) {\n RED\n} @empty {\n NOTHING\n}",
        ),
        (
            "@extends('main')\n@section('title', 'Home')\n@foreach ($users as $user)\n Hello\n@endforeach\n",
            "@extends('main')\n@section('title', 'Home')\n@foreach ($users as $user)\n HELLO\n@endforeach\n",
        ),
        ("<?php if ($a->b > 2): ?>Text<?php endif; ?>", "<?php if ($a->b > 2): ?>TEXT<?php endif; ?>"),
        ("<% if a > b %>Hello<% else %>Bye<% end %>", "<% if a > b %>HELLO<% else %>BYE<% end %>"),
        ("{{#if x}}Hello{{else}}Bye{{/if}}", "{{#if x}}HELLO{{else}}BYE{{/if}}"),
        ("{{- range .Pages -}}Page{{- end -}}", "{{- range .Pages -}}PAGE{{- end -}}"),
        ("@model My.Page\n@using My.Parts\n<p>Hello</p>", "@model My.Page\n@using My.Parts\n<p>HELLO</p>"),
        ("@if(a()->b()) Hello @else Bye @endif", "@if(a()->b()) HELLO @else BYE @endif"),
        ("{#if user}Hello{:else}Bye{/if}", "{#if user}HELLO{:else}BYE{/if}"),
        ("{if $a}Hello{else}Bye{/if}", "{if $a}HELLO{else}BYE{/if}"),
        ("<#if user??>Hello<#else>Bye</#if>", "<#if user??>HELLO<#else>BYE</#if>"),
        ("#if($a) Hello #else Bye #end", "#if($a) HELLO #else BYE #end"),
        ("[% IF x %]Hello[% ELSE %]Bye[% END %]", "[% IF x %]HELLO[% ELSE %]BYE[% END %]"),
        ("$if(title)$Hello$else$Bye$endif$", "$if(title)$HELLO$else$BYE$endif$"),
        (
            "Hello{% highlight css %}\na { top: <b>red</b> }\n\n/* my car */{% endhighlight %}Bye",
            "HELLO{% highlight css %}\na { top: <b>red</b> }\n\n/* my car */{% endhighlight %}BYE",
        ),
        (
            "Hello{{< highlight go >}}my {{ car }}{{< /highlight >}}Bye",
            "HELLO{{< highlight go >}}my {{ car }}{{< /highlight >}}BYE",
        ),
    ],
)
def test_statements_of_templates_stay_and_divide_texts(page: str, expected: str) -> None:
    assert upper(page) == expected
    assert translated(read_html(page.encode()), REVERSED) == expected  # each text has one word
    assert done(read_html(page.encode()), Identity()).data.decode() == page


@pytest.mark.parametrize(
    "block",
    [
        "{{% block {} %}}red{{% endblock %}}",
        "{{%- block {} -%}}red house{{%- endblock {} -%}}",
        '{{block name="{}"}}red{{/block}}',
        '{{{{define "{}"}}}}red{{{{end}}}}',
        '{{{{#block "{}"}}}}red{{{{/block}}}}',
        "@section('{}')red @endsection",
    ],
)
def test_a_block_whose_name_says_that_its_value_is_for_a_program_stays(block: str) -> None:
    for name in ("id", "body_class", "href", "lang", "pageUrl", "bodyclass"):
        assert upper(f"<p>Hello</p>{block.format(name, name)}") == f"<p>HELLO</p>{block.format(name, name)}"
    for name in ("title", "content", "video"):
        assert upper(block.format(name, name)) == block.format(name, name).replace("red", "RED").replace(
            "house", "HOUSE"
        )


@pytest.mark.parametrize(
    "comment",
    [
        "{# a <b>red</b>\n car #}",
        "{{!-- a {{red}} car --}}",
        "{{! a red car }}",
        "{{/* a car */}}",
        "{{-- a car --}}",
        "@* a car *@",
        "{* a car *}",
        "<#-- a car -->",
        "<%# a car %>",
        "<%-- a > car --%>",
        "{% comment %} a car {% endcomment %}",
        "<f:comment>a {car} <b>red</b></f:comment>",
    ],
)
def test_comments_of_templates_stay(comment: str) -> None:
    assert upper(f"<p>One {comment} two</p>") == f"<p>ONE {comment} TWO</p>"


@pytest.mark.parametrize(
    "value",
    [
        "<?= $user->name ?>",
        "<?php echo $user->name; ?>",
        "<%= user.name > 3 %>",
        "{{ $user->name }}",
        "{!! $user->name !!}",
        "{{{ name }}}",
        "@Model.User.Name",
        '@Html.ActionLink("Edit", "Go")',
        "@(Model.Name)",
        "@p.Name",
        "@lang('my.text')",
        "{$name}",
        "[% name | html %]",
        "{% link a>b.md %}",
        "$author.name$",
        "$title-prefix$",
        "{f:translate(key: 'LLL:EXT:news/locallang.xlf:my.red.car')}",
        "{f:if(condition: '{a} > 1', then: 'my car', else: other.name)}",
        "{file.size -> f:format.bytes()}",
        "{text -> f:format.crop(maxCharacters: 9) -> f:format.raw()}",
        r"$\alpha + \text{some words}$",
        r"\(x < \text{some words}\)",
        r"\[ \frac{a}{b} \text{words} \]",
        r"\begin{align} a &= b \text{ words} \\ \begin{cases} c \end{cases} \end{align}",
    ],
)
def test_values_of_templates_and_formulas_take_the_place_of_a_word(value: str) -> None:
    page = f"<p>Hello {value} today</p>"
    assert upper(page) == f"<p>HELLO {value} TODAY</p>"
    assert translated(read_html(page.encode()), REVERSED) == f"<p>TODAY {value} HELLO</p>"


def test_the_settings_before_a_page_stay() -> None:
    assert upper("---\nlayout: news\ntitle: The car\n---\n<p>Hello</p>") == (
        "---\nlayout: news\ntitle: The car\n---\n<p>HELLO</p>"
    )


def test_a_template_inside_a_tag_belongs_to_the_tag() -> None:
    page = '<a {% if a > b %}class="x"{% endif %} title="My car" href="{{ url }}">Hello</a>'
    assert upper(page) == page.replace("My car", "MY CAR").replace("Hello", "HELLO")


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and not $6.",
        "It costs $5 <b>more</b> than 3 CA$ here.",
        "You pay 5$ or 6$ here.",
        "Write {me} a letter.",
        "It is 100% {sure}.",
        "Ask a } or b.",
        "a @ b",
        "We are #1 of the end.",
        "Write to a@b.com or @me.",
        "One [1%] of {x}",
        "See #end and #else.",
        "Write {if you like} a letter.",
        "One\n{\nor two\n}\n",
        "Write {me: a letter} or {note:this (one)} here.",
        "Use {% highlight to mark a car.",
    ],
)
def test_signs_of_prose_are_no_template(text: str) -> None:
    assert template_parts(text) == []


def test_scripts_code_and_comments_hold_no_template() -> None:
    page = "<script>a = {# b</script><style>p{#x}</style><!-- {% if --><p>Hello #} %} world</p>"
    assert upper(page) == page.replace("Hello", "HELLO").replace("world", "WORLD")


@pytest.mark.heavy
@pytest.mark.parametrize(
    "sign",
    [
        "{#",
        "{%",
        "{{",
        "<%",
        "<?php ",
        "@if (",
        r"\begin{a}",
        r"\(",
        "{{!--",
        "@*",
        "{if ",
        "<#if ",
        "#if(",
        "[% IF",
        "@x(",
        "{f:if(",
        "{a -> ",
        "<f:comment>",
    ],
)
def test_signs_without_an_end_are_no_template(sign: str) -> None:
    # A reader that reads to the end of the page from each of them would take hours.
    assert template_parts(sign * 100_000) == []


@pytest.mark.heavy
@pytest.mark.parametrize("sign", ["{% highlight a %}", "{{< highlight >}}"])
def test_commands_for_code_without_an_end_are_values(sign: str) -> None:
    assert {part.kind for part in template_parts(sign * 100_000)} == {PartKind.VALUE}


def test_the_branches_of_icu_in_a_page_are_texts() -> None:
    page = "<p>Now {n, plural, =0 {<b>no</b> car} =1 {one car} other {{{n}} red cars}}</p>"
    expected = "<p>NOW {n, plural, =0 {<b>NO</b> CAR} =1 {ONE CAR} other {{{n}} RED CARS}}</p>"
    assert upper(page) == expected
    assert done(read_html(page.encode()), Identity()).data.decode() == page


@pytest.mark.parametrize(
    "word",
    [
        "item{% if n > 1 %}s{% endif %}",
        "item<?php if ($n > 1): ?>s<?php endif; ?>",
        "item<% if n > 1 %>s<% end %>",
        "item{{#if many}}s{{/if}}",
    ],
)
def test_the_condition_of_an_ending_does_not_divide_its_word(word: str) -> None:
    [segment] = read_html(f"<p>You have red {word} here</p>".encode()).segments
    assert plain_text(segment.pieces) == "You have red items here"


def test_the_condition_of_an_ending_encloses_the_same_ending_or_nothing() -> None:
    page = "<p>The item{% if n %}s{% endif %}, the red car{% if m %}s{% endif %}.</p>"
    assert upper(page) == "<p>THE ITEMS{% if n %}{% endif %}, THE RED CARS{% if m %}{% endif %}.</p>"
    assert done(read_html(page.encode()), Identity()).data.decode() == page


def test_an_environment_of_latex_holds_others_of_its_name() -> None:
    formula = r"\begin{array} a \begin{array} b \end{array} words \end{array}"
    assert upper(f"<p>Hello {formula} today</p>") == f"<p>HELLO {formula} TODAY</p>"
    unfinished = r"\begin{a} one \begin{b} two \end{c}"
    assert template_parts(unfinished) == []
