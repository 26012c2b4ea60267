"""Which parts of a text are protected spans."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.decoding.protected_spans import Promise
from transformer_cli.text import spans as spans_module
from transformer_cli.text.quotation_marks import plain_quotes, with_pairs_of_quotes, with_written_quotes
from transformer_cli.text.spans import (
    SpanKind,
    find_spans,
    is_enclosed,
    masked,
    may_touch_word,
    span_texts,
    spans_at_words,
)

# Pieces that together make nearly every kind of span, and nearly none.
PIECES = [
    *"nrtaZé5 .,:;!?'\"()<>{}[]%$@#/\\-_&|`~=+€\u00a0\u2028\u0301中",
    *(
        "a-z",
        "http://",
        "www.",
        "a.it",
        ".com",
        "%s",
        "{x}",
        "<b>",
        "</b>",
        "EUR",
        "10",
        "&amp;",
        "&#39;",
        "\\n",
        '\\"',
        "**",
        "<!--",
        "-->",
    ),
    *("Ctrl", "Alt", "Tab", "C", "Z", "f", "x^", "3.x", ".times", "com.", "u/", "\u2318", "Meta"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=30)


def found(text: str) -> list[str]:
    return span_texts(text, find_spans(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://a.b/c?d=1&e#f.", ["https://a.b/c?d=1&e#f"]),
        ("Write YYYY-MM-DD or dd.MM.yyyy HH:mm:ss.", ["YYYY-MM-DD", "dd.MM.yyyy", "HH:mm:ss"]),
        ("The date (M/D/YY, yyyyMMdd, dd_MM_yyyy_hh-mm)", ["M/D/YY", "yyyyMMdd", "dd_MM_yyyy_hh-mm"]),
        ("Times: HH:MM:SS, hh:mm:ss:ms, HH:mm:ss,SSS", ["HH:MM:SS", "hh:mm:ss:ms", "HH:mm:ss,SSS"]),
        ("D.D. and S.M. of SS.MM. and a dd-wrt router, add.mm, YYYY and mm.", []),
        ("Open about:config, not about: the dog", ["about:config"]),
        ("The header X-Car-Signature-256 of the X-Ray house", ["X-Car-Signature-256"]),
        ("Write to @tom:red.example in #dogs:red.example.", ["@tom:red.example", "#dogs:red.example"]),
        ("(see http://a.b/c_(d)), www.x.it!", ["http://a.b/c_(d)", "www.x.it"]),
        ("看https://a.b/c。好", ["https://a.b/c"]),
        ("https://it.wikipedia.org/wiki/Caffè è", ["https://it.wikipedia.org/wiki/Caffè"]),
        ("Write to anna.b+c@mail.co.uk, please.", ["anna.b+c@mail.co.uk"]),
        ("<if-!hours><hours> hours</if-!hours> <!bold>", ["<if-!hours>", "<hours>", "</if-!hours>", "<!bold>"]),
        ("He says <! the dog> and <-!> <!>", []),
        ("On example.com/x, e.g. here. The end.Start", ["example.com/x"]),
        ("The dogs are at house3.it.", ["house3.it"]),
        ("See RedHouse.de/dogs, house3.de", ["RedHouse.de/dogs", "house3.de"]),
        ("Visit RedHouse.app and redhouse.app now; (house3.at)", ["RedHouse.app", "redhouse.app", "house3.at"]),
        ("Red.it is. The house.de la casa. My mp3.it is big", ["mp3"]),
        ("Hello {name}, {0:.2f} {{ y }} ${x} %{z} [[t]]", ["{name}", "{0:.2f}", "{{ y }}", "${x}", "%{z}", "[[t]]"]),
        ("Ciao 😀! ☕️, 👨‍👩‍👧 ❤️❤️ 🇮🇹 ★★☆ 👍🏽.", ["😀", "☕️", "👨‍👩‍👧", "❤️❤️", "🇮🇹", "★★☆", "👍🏽"]),
        ("At 180°C or -5 °F, 90° is ₹5 or 5₽, not 3°Cx", ["180°C", "-5 °F", "90°", "₹5", "5₽", "3"]),
        ("%s has %(n)d, %1$s, %.2f or %5d; 100%sure", ["%s", "%(n)d", "%1$s", "%.2f", "%5d", "100"]),
        *(
            (f"See {begin}{'the red dog ' * 20}{end}.", [f"{begin}{'the red dog ' * 20}{end}"])
            for begin, end in (("{%tr if ", "%}"), ("{{ ", "}}"), ("{{{", "}}}"), ("<%= ", "%>"), ("{# ", "#}"))
        ),
        ("{% set x = {'a': 'red dog'} %}Yes", ["{% set x = {'a': 'red dog'} %}"]),
        ("{#if x}the dog{/if}", ["{#if x}", "{/if}"]),
        (
            "<b>two</b> <br/> <a href='x y'>z</a> <0>w</0>",
            ["<b>", "</b>", "<br/>", "<a href='x y'>", "</a>", "<0>", "</0>"],
        ),
        ("<!-- a > b --> if a < b and c <3", ["<!-- a > b -->", "3"]),
        ("&amp; &#39; R&D `x y`", ["&amp;", "&#39;", "R&D", "`x y`"]),
        ("AT&T, Q&A. B & B but fish & chips, a&b, Tom&Mary and &ABC;", ["AT&T", "Q&A", "B & B", "&ABC;"]),
        ("See :c:func:`x`, :class:`y` and :name: or a:b:`c`", [":c:func:`x`", ":class:`y`", ":name:", "`c`"]),
        ("The ``big dog'' and ``cat'', or `that' and `this', but `code` and ``x``", ["`code`", "``x``"]),
        ("In ``a``. Then :menu:`Open` (``b``, ```c```).", ["``a``", ":menu:`Open`", "``b``", "```c```"]),
        ("See `a`_, `b <http://c.it>`__ and `d`_e.", ["`a`_", "`b <http://c.it>`__", "`d`"]),
        ("_See `a`_ and `b`, __see `c`__, _`d`_", ["`a`", "`b`", "`c`", "`d`"]),
        ("``d `e` f``s, ``house``s and ``these'' and ``those''", ["``d `e` f``", "``house``"]),
        ("/usr/bin/x, ~/y and ./z or C:\\Users\\me", ["/usr/bin/x", "~/y", "./z", "C:\\Users\\me"]),
        ("{url}/the/house?login to /a/b?x=dog&y=%20c.", ["{url}", "/the/house?login", "/a/b?x=dog&y=%20c"]),
        (
            "{url}/users?login, {url}?open=house&x={x}&red=%s",
            ["{url}", "/users?login", "{url}", "?open=house&x=", "{x}", "&red=", "%s"],
        ),
        ("Is it /usr/bin?Yes, /usr/bin?the dog, {name}?we and/or?house", ["/usr/bin", "/usr/bin", "{name}"]),
        ("and/or report.pdf. I/O", ["report.pdf", "I/O"]),
        ("> ```python", ["```python"]),
        ('<color=#ff0000>The dog</color> <link="a b">is', ["<color=#ff0000>", "</color>", '<link="a b">']),
        ("<size=20><#f00>big</size> <sprite=3>", ["<size=20>", "<#f00>", "</size>", "<sprite=3>"]),
        ("if a < b= c > d", []),
        ("```c++ ", ["```c++ "]),
        ("the dog```python", []),
        ("Open report_v2.docx, favicon.ico and IMG_001.JPG.", ["report_v2.docx", "favicon.ico", "IMG_001.JPG"]),
        ("See a.ts or site.tar.gz. He came.So what? Etc.C", ["a.ts", "site.tar.gz"]),
        ("@anna #topic # a", ["@anna", "#topic"]),
        ("A4, mp3, XY-123/45", ["A4", "mp3", "XY-123/45"]),
        (
            "~~[old](http://a.b)~~ and ~~http://a.b~~ or http://a.b/~me",
            ["~~", "http://a.b", "~~", "~~", "http://a.b", "~~", "http://a.b/~me"],
        ),
        ("I like .NET, ASP.NET and C#.NET.", [".NET", "ASP.NET", "C#.NET"]),
        ("A second Ctrl-C ends it.", ["Ctrl-C"]),
        ("Press Ctrl-Alt-Del or Alt-Tab", ["Ctrl-Alt-Del", "Alt-Tab"]),
        ("Meta-analyses: Shift-work, Alt-right and Meta-analysis", []),
        ("A .pdf file (.DOCX) at a .com address. It is big .The cat", [".pdf", ".DOCX", ".com"]),
        ("All .fb2.zip, .tar.gz and .FB2.ZIP files (.d.ts).", [".fb2.zip", ".tar.gz", ".FB2.ZIP", ".d.ts"]),
        ("A .js.map at .co.uk, .eslintrc.json or .env.local", [".js.map", ".co.uk", ".eslintrc.json", ".env.local"]),
        ("It is big .the cat .dogs.we go .and.but .zip.it is", [".zip"]),
        ("5kg, 3pm and the 21st", ["5", "3", "21"]),
        ("€5.20, 1.20 EUR, 50%, 5 % and -7", ["€5.20", "1.20 EUR", "50%", "5 %", "-7"]),
        ("1,234.5 at 10:30 on 2024-05-01.", ["1,234.5", "10:30", "2024-05-01"]),
        ("1, 2 and 3.", ["1", "2", "3"]),
        ("5 %s, 5 %(x)d, 5 ${x}", ["5", "%s", "5", "%(x)d", "5", "${x}"]),
        ("The __count__ and @__mention__ of a__b", ["__count__", "@__mention__", "a__b"]),
        ("%count% %%name%% 100%% 5 %% %% %%%", ["%count%", "%%name%%", "100%%", "5 %%", "%%"]),
        (
            "write %%s, (%%d) %%1$s %%(name)s: 50%% of it, %%discount",
            ["%%s", "%%d", "%%1$s", "%%(name)s", "50%%", "%%"],
        ),
        ("use %%s%%d, %%s%d and %%(name)s%%d", ["%%s", "%%d", "%%s", "%d", "%%(name)s", "%%d"]),
        (
            "run `a\tb` or `c`\t`d`, it`s\tdon`t",
            ["`a\tb`", "`c`", "`d`"],
        ),
        (
            "Hi :name, :Name (:count) :smile: 10:30 :) :D std::x a:b",
            [":name", ":Name", ":count", ":smile:", "10:30", "std::x"],
        ),
        ("<%= user.name %> <% if x %>", ["<%= user.name %>", "<% if x %>"]),
        ('%(user.name)s %(day|date:"F")s', ["%(user.name)s", '%(day|date:"F")s']),
        ("%*d %.*f %n %1 %L2 5%n", ["%*d", "%.*f", "%n", "%1", "%L2", "5"]),
        ("The !name is new ! \u00a1hola! a!b", ["!name"]),
        ("!and the :name: is", [":name:"]),
        ("[X7X] and [0]", ["[X7X]", "0"]),
        (r"one\ntwo \n \u00e9 \new", ["\\n", "\\n", "\\u00e9", "\\new"]),
        (r"%s\%s {dog}\{cat} %1$s\%2$s", ["%s", "\\", "%s", "{dog}", "\\", "{cat}", "%1$s", "\\", "%2$s"]),
        (r"${x}\${y} [[a]]\[[b]] \$name", ["${x}", "\\", "${y}", "[[a]]", "\\", "[[b]]", "\\", "$name"]),
        (r"\{the dog\} \[\[name\]\] \% of \$5", [r"\{", r"\}", r"\[", r"\[", r"\]", r"\]", r"\%", r"\$", "5"]),
        (r"red\nand first\r\nThe\n\nx Name:\tAnna dog.\\nIt", ["\\n", "\\r\\n", "\\n\\n", "\\t", "\\\\n"]),
        (
            r"dir\name DOMAIN\nick src\tools\new.py C:\new \\host\share",
            ["dir\\name", "DOMAIN\\nick", "src\\tools\\new.py", "C:\\new", "\\\\host\\share"],
        ),
        (
            r"\textbf{big} x\\ny caf\u00e9 100\% of \$5 \\ it \ is\\",
            ["\\textbf", "{big}", "x\\\\ny", "caf\\u00e9", "100", "\\%", "\\$", "5", "\\\\", "\\", "\\\\"],
        ),
        ("The **big** *small* dog**s**, ~~no~~ 2*3 word ~x", ["**", "**", "*", "*", "**", "**", "~~", "~~", "2", "3"]),
        ("* Fields with * are here.\n * The dog is big *", ["*", "*"]),
        ("Text (*.txt)|*.txt|All (*.*)|*.*|*.png; *.jpg", ["*.txt", "*.txt", "*.*", "*.*", "*.png; *.jpg"]),
        ("Open *.tar.gz or src/*.py.", ["*.tar.gz", "src/*.py"]),
        ("All *.fb2.zip/*.fb2.rar or *.a.b.c files", ["*.fb2.zip/*.fb2.rar", "*.a.b.c"]),
        ("The wp_*_options, 'WP_*', data-* and --color-*", ["wp_*_options", "WP_*", "data-*", "--color-*"]),
        (
            "See docs/**/*.md, docs/** and **/*.js; image/*, */*",
            ["docs/**/*.md", "docs/**", "**/*.js", "image/*", "*/*"],
        ),
        ("/usr/lib/*.a, /usr/lib/* or ~/x/*.py here", ["/usr/lib/*.a", "/usr/lib/*", "~/x/*.py"]),
        ("IMG_??.jpg or test-*.pdf and java.util.*", ["IMG_??.jpg", "test-*.pdf", "java.util.*"]),
        ("https://*.example.org/* and **see https://a.org/**", ["https://*.example.org/*", "**", "https://a.org/"]),
        ("and/*or*, *a*/*b*, f*ck, dog*innen, *_big dog_*, it is.*", ["*"] * 9),
        ("*_big dog_*, **a /usr/lib/** and **the man/**", ["*", "*", "**", "/usr/lib/", "**"]),
        ("Is it here? It is big.* Why?.The dog*", ["*", "*"]),
        ("The dog%nThe cat.%nIt has %n or 5 %name", ["%n", "%n", "%n", "5"]),
        (
            "foo_bar, foo_bar() call() f(x) _so_ Ctrl+S v1.2.3-beta",
            ["foo_bar", "foo_bar()", "call()", "f(x)", "Ctrl+S", "v1.2.3-beta"],
        ),
        ("Press Ctrl+/, Alt+[ or (Ctrl+Shift+,). C++/Java", ["Ctrl+/", "Alt+[", "Ctrl+Shift+,", "C++"]),
        ("Ctrl-C, Ctrl-Alt-x, Strg-F5 or Shift + Enter", ["Ctrl-C", "Ctrl-Alt-x", "Strg-F5", "Shift + Enter"]),
        ("Meta-analysis and Shift-work, Alt-Kanzler: Ctrl-", []),
        (
            "Press Ctrl Q, Ctrl Shift T, Strg c, Alt F4 or Shift Tab; %kbd Ctrl I %",
            ["Ctrl Q", "Ctrl Shift T", "Strg c", "Alt F4", "Shift Tab", "%kbd Ctrl I %"],
        ),
        ("Alt ist der Hund, my Shift I love, Ctrl y Alt, Alt Und Neu, Shift workers", []),
        (
            "Open D:/My Files/x.txt, C:/data, C:/ or C:\\My Files\\x.txt now",
            ["D:/My Files/x.txt", "C:/data", "C:/", "C:\\My Files\\x.txt"],
        ),
        (
            "C:/Program Files (x86)/Red/dog.exe http://a.b/C:/d",
            ["C:/Program Files (x86)/Red/dog.exe", "http://a.b/C:/d"],
        ),
        ("It is so:/ dog: /cats, note:/", []),
        ("The 2.x houses, v. 2.3.x of 4 xylophones", ["2.x", "2.3.x", "4"]),
        ("Flight 34B, seat 12A. At 45-12AB or 123-23FZ", ["34B", "12A", "45-12AB", "123-23FZ"]),
        ("A 3D garden, 5V and 2C; 3D-printed", ["3D", "5V", "2C", "3"]),
        ("At 10AM, 500MB in the 1980S, $5M, 10M\u20ac, 2ND, 5KG", ["10", "500", "1980", "$5", "10", "2", "5"]),
        ('Find a .dog file, .OBJ files, ".aff" or (.ZZT format)', [".dog", ".OBJ", ".aff", ".ZZT"]),
        ('The file is "house.ZZT". "The end.NO" is none.', ["house.ZZT"]),
        ('Find a dog .file it. The end .Start "the end." files .a file', []),
        ("v0.7.x beta, v0.7.1.x-dev and v0.8.x.", ["v0.7.x", "v0.7.1.x-dev", "v0.8.x"]),
        (
            "$NAME$ in $LINK_END$the car$link_end$, $1 is $x and $y or US$5",
            ["$NAME$", "$LINK_END$", "$link_end$", "$1", "$x", "$y", "$5"],
        ),
        (
            "$(name) {{{x}}} ${{ y }} @name@ @@x@@ <<name>> [% x %] %<name>s %[1]d",
            ["$(name)", "{{{x}}}", "${{ y }}", "@name@", "@@x@@", "<<name>>", "[% x %]", "%<name>s", "%[1]d"],
        ),
        (
            "#{x} ###NAME### #name# ~NAME~ ~old~ *|NAME|* $x.y $x->y @{x} %p",
            ["#{x}", "###NAME###", "#name#", "~NAME~", "*|NAME|*", "$x.y", "$x->y", "@{x}", "%p"],
        ),
        (
            r"%1$@ %ld {0,number} $t(key) @:key Hello \(name), \(or this\).",
            ["%1$@", "%ld", "{0,number}", "$t(key)", "@:key", r"\(name)", r"\(", r"\)"],
        ),
        ("@j-tai, @anna.maria. @a_b! #my-tag. @tom.The dog", ["@j-tai", "@anna.maria", "@a_b", "#my-tag", "@tom"]),
        (
            "user/repo#123 @org/package, @org/package@1.2 @me@a.org and/or",
            ["user/repo#123", "@org/package", "@org/package@1.2", "@me@a.org"],
        ),
        (
            "Use --mode, --set=x.y=1 or --no-cache (--all) and -v.",
            ["--mode", "--set=x.y=1", "--no-cache", "--all", "-v"],
        ),
        (
            "Use -fix:1, -fix=1 or (-std=c++11) and --fix:on, -t:1, /fix:1.",
            ["-fix:1", "-fix=1", "-std=c++11", "--fix:on", "-t:1", "/fix:1"],
        ),
        ("-fix:[0/1/2/3] or |-seqformat:[format_string]", ["-fix:[0/1/2/3]", "-seqformat:[format_string]"]),
        ("-Anna:yes, -Anna:5 -red:big -at 5:30 -I am, well-known:2", ["5", "5:30", "2"]),
        ("It is --I think-- big --which is good-- --Anna\n-I am here. well-known a -- b x --", []),
        (
            "getName, 'self.lastActiveUser' GitHub AppleScriptEditor addItem() std::vector<T> com.example.app",
            [
                "getName",
                "self.lastActiveUser",
                "GitHub",
                "AppleScriptEditor",
                "addItem()",
                "std::vector",
                "<T>",
                "com.example.app",
            ],
        ),
        (
            "Call getDog(house) or getDog(house, my_cat). redDog.ui, a (.ses) file, http:// and getName (big) house(dog).It getName.the",
            ["getDog(house)", "getDog(house, my_cat)", "redDog.ui", ".ses", "http://", "getName", "getName"],
        ),
        (
            "iPhone, McDonald, MacArthur, iOS, PhD, isiZulu, KwaZulu, nGaeltacht, bhFuil, LehrerInnen, LeBron, e.g. end.Next endThe",
            [],
        ),
        (
            "It is b.name. Use Object.keys, an_object.a_name, C++ or (C#)!",
            ["b.name", "Object.keys", "an_object.a_name", "C++", "C#"],
        ),
        (
            "Type an_object.call(), my_list.add(1), a_space::a_type or call_it() of my_file.",
            ["an_object.call()", "my_list.add(1)", "a_space::a_type", "call_it()", "my_file"],
        ),
        ("Set user.name.first. The dog is big.please come. I am here.call me. Good.thanks", ["user.name.first"]),
        ("Use ng-show, v-else-if or x-text.", ["ng-show", "v-else-if", "x-text"]),
        ("It has aria-label, data-bs-toggle and hx-get", ["aria-label", "data-bs-toggle", "hx-get"]),
        ("An x-ray of a v-neck, data-driven on the x-axis", []),
        ("They made it with Aspose.Words and System.Text.Json.", ["Aspose.Words", "System.Text.Json"]),
        ("I live in Rome.They know Prof.Smith. Yes.Tom does.", []),
        ("The #red/dog and #red-dog/big.", ["#red/dog", "#red-dog/big"]),
        (
            "Object.keys is good. Math.floor, read.me and user.name, too.",
            ["Object.keys", "Math.floor", "read.me", "user.name"],
        ),
        ("It is good.me too. Good.thanks. Set.the. Number.one is big.names", ["Number.one", "big.names"]),
        ("The cat is a/b small, n/a or m/s; w/o e/o un/a the/a a/the 1/a", ["a/b", "n/a", "m/s", "1"]),
        (
            "At 5.p.m, i.e closed.the house p.es.uno sig.ra u.s.a e.g p.m x.y. x.y etc.and 5 ++a A+ a#",
            ["5", "x.y", "5"],
        ),
        ("In word/header1.xml, OEBPS/content.opf or and/or x/y.", ["word/header1.xml", "OEBPS/content.opf", "x/y"]),
        ("Type /help or (/mail clear), yes/no, km /h, /.", ["/help", "/mail"]),
        ("/help", ["/help"]),
        ("Enable (1) /disable (0) or /help (1) /list (2)", ["1", "0", "/help", "1", "/list", "2"]),
        ("/where are you", []),
        ("He said /where are you?/", []),
        ("Use -i/--create-img=foo.png, -o|--all or either/or.", ["-i", "--create-img=foo.png", "-o", "--all"]),
        (
            "Hello [onshow..now;frm='yyyy-mm'] [a.name;ope=x] [x;block=p;when [var.y]=0], [a.b](url) [a.b][c] [sic] [e.g. this] [red dog; cat]",
            ["[onshow..now;frm='yyyy-mm']", "[a.name;ope=x]", "[x;block=p;when [var.y]=0]"],
        ),
        (
            "+++FOR film IN films+++ one +++= film.title+++ +++$f.x+++ +++LINK ({ url: `a+b` })+++ +++ News +++ today +++",
            ["+++FOR film IN films+++", "+++= film.title+++", "+++$f.x+++", "+++LINK ({ url: `a+b` })+++"],
        ),
        (
            '<click:open_url:"{0}">here</click> <gradient:#5e4fa2:#f79459>red</gradient> <red:x',
            ['<click:open_url:"{0}">', "</click>", "<gradient:#5e4fa2:#f79459>", "</gradient>"],
        ),
        (
            'The [b]red[/b] [url=https://a.org]car[/url] [*] [vc_row x="1/2" y=3]go[/vc_row] [COLOR red]on[/COLOR]',
            [
                *["[b]", "[/b]", "[url=https://a.org]", "[/url]", "[*]"],
                *['[vc_row x="1/2" y=3]', "[/vc_row]", "[COLOR red]", "[/COLOR]"],
            ],
        ),
        ("Na+ and K+, Na\u207a, SO\u2084\u00b2\u207b, C++", ["Na+", "K+", "Na\u207a", "SO\u2084\u00b2\u207b", "C++"]),
        ("I + you, On+off, US+, a B+ and B+C", []),
        ("He [Anna] is [sic] here [the door closes], see [here](/b) or [b]", []),
        (
            "The dog\u00b9 runs.\u00b2 So\u00b3 20 km\u00b2, sin\u00b2 x, \u201cyes\u201d\u2074\u2075 and dogs\u00b9x",
            ["\u00b9", "\u00b2", "20", "\u2074\u2075"],
        ),
        ("<%s-n>, <%1$s-KP+>, <{0}+Shift+F5>, a <%s - n>", ["<%s-n>", "<%1$s-KP+>", "<{0}+Shift+F5>", "%s"]),
        ("= LN(10), =SUM(A1:A5) = ROUND(LN(10),2)", ["LN(10)", "SUM(A1:A5)", "ROUND(LN(10),2)"]),
        ("x = USA(the land), LN(10) = NATO (1949)", ["10", "1949"]),
        (
            "See tests/small_data and tests/big_data/, prints/small/square.vox, include/red-dog.h and READ.md#the-dog.",
            ["tests/small_data", "tests/big_data/", "prints/small/square.vox", "include/red-dog.h", "READ.md#the-dog"],
        ),
        ("Read main.h", ["main.h"]),
        ("Is it dog_host.h?", ["dog_host.h"]),
        (
            "The dog is in src/dog.cc, house.h, dog_host.in, config.h.in and Makefile.am now.",
            ["src/dog.cc", "house.h", "dog_host.in", "config.h.in", "Makefile.am"],
        ),
        ("Look at dog.go", ["dog.go"]),
        ("(The file is in main.m)", ["main.m"]),
        ("Look at the dog.go home, d.h. the house.in, p.m", []),
        ("$HOME/bin/dog.so or $PATH, Info.plist, dog.stl", ["$HOME/bin/dog.so", "$PATH", "Info.plist", "dog.stl"]),
        ("He/she and/or they, red/green/blue.The dog, red/green/blue.the dog, and/or-not.the", []),
        (
            "Call HttpApi.fetch_async(request), dog.walk_far(a, speed) or find_dog(3)",
            ["HttpApi.fetch_async(request)", "dog.walk_far(a, speed)", "find_dog(3)"],
        ),
        ("find_dog(the red one), dog(s) and cat(big)", ["find_dog"]),
        ("It is set to Vector2.Zero here", ["Vector2.Zero"]),
        ("Game.Exit", ["Game.Exit"]),
        ("Game.Exit is here. Prof.Smith", []),
        ("Ask @Anna.Thanks or @System.String?text=dog", ["@Anna", "@System.String?text=dog"]),
        ("((63e2f5a1-1a2b-4c3d-8e4f-0123456789ab))", ["63e2f5a1-1a2b-4c3d-8e4f-0123456789ab"]),
        ("Use np.stack, console.log and x_padding=True", ["np.stack", "console.log", "x_padding=True"]),
        (
            "git@example.org:a/dog.git, .gitignore, .bashrc (.env) and dog@~1.2.3",
            ["git@example.org:a/dog.git", ".gitignore", ".bashrc", ".env", "dog@~1.2.3"],
        ),
        ("The dog .src and big.env, a.dog:walk()", ["a.dog:walk()"]),
        ("6b5f572c: the dog, count=10 and (is_red=true)", ["6b5f572c", "count=10", "is_red=true"]),
        ("the day=night, 4x=big and deadbeef", ["4"]),
        ("src/Dog/read_image.cpp.diff, app.js.map", ["src/Dog/read_image.cpp.diff", "app.js.map"]),
        ("It is built with -DUSE_DOG and -DNDEBUG, on -DVD.", ["-DUSE_DOG", "-DNDEBUG"]),
        (r"Not\nenough\ningredients and\neverything", [r"\n"] * 3),
        (r"Red\nupdates, two\nitems, a\nuser", [r"\n"] * 3),
        (
            r"\nabla, \newline, dir\name, src\note, a\nina, src\never and b\nine",
            [r"\nabla", r"\newline", r"dir\name", r"src\note", r"a\nina", r"src\never", r"b\nine"],
        ),
        ("GET /dogs, POST /dogs/{id} now", ["GET /dogs", "POST /dogs/{id}"]),
        ("GET https://dogs.org/api", ["GET", "https://dogs.org/api"]),
        ("Send a PUT request; it has GETs and POSTs.", ["PUT", "GETs", "POSTs"]),
        ("GET THE DOG, Get it, POST OFFICE", []),
        ("/weather is red", ["/weather"]),
        ("/station supporting dogs", ["/station"]),
        ("/this is red", []),
        ("/weather is red/", []),
        ("/Hello there", []),
        ("TimeMix", ["TimeMix"]),
        ("HouseMouse is here", []),
        ("C:>dogcat house.txt", ["C:>dogcat house.txt"]),
        (r"C:\red dog>", [r"C:\red"]),
        (r"C:\>dir", [r"C:\>dir"]),
        ("Type C:>dogcat house.txt now.", ["C:>dogcat house.txt"]),
        ("Use -wait or -silent; the option -X", ["-wait", "-silent", "-X"]),
        ("the -no-splash flag, a dog -out <file>", ["-no-splash", "-out <file>"]),
        ("Run the dog -red -big --wait now.", ["-red -big --wait"]),
        ("-wait  wait for the dog", ["-wait"]),
        ("\t-Xnosplash\tno dog", ["-Xnosplash"]),
        ("-o FILE  write to it", ["-o FILE"]),
        ("  -x  a frame", ["-x"]),
        ("-x show this help", ["-x"]),
        ("-h, --help  show it", ["-h", "--help"]),
        ("-Hello, how are you?", []),
        ("-yes, I do. -ing is an ending.", []),
        ("- item\n-Anna is here", []),
        ("The dog -a big one- is red -but not old.", []),
        ("with -this is odd- the dog, the -big one- here", []),
        ("a well-known -5", ["-5"]),
        ("IF (WIN32), if (USE_DOG), if (NATO) comes", ["IF (WIN32)", "if (USE_DOG)"]),
        ('set(DOG_C_FLAGS "-std=c99"), set(the red dog)', ['set(DOG_C_FLAGS "-std=c99")']),
        ("ADD_DOG( dog PUBLIC ) and USE_DOG (a red dog)", ["ADD_DOG( dog PUBLIC )", "USE_DOG"]),
        ("The primers ACAATGC...AAA and GATTACA, 5'-ACGUACGU-3'", ["ACAATGC...AAA", "GATTACA", "5", "ACGUACGU", "3"]),
        ("ACT...CAT TAGGED CAUGHT TACT", []),
        ("No span at all: none.", []),
    ],
)
def test_spans_are_found(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "line",
    [
        "Message-ID: <4F7AC0F5.9060102@example.com>",
        "Received: from a.example.com (a.example.com [192.0.2.1]) by b.example.org with ESMTP id 4B2; Tue, 3 Apr 2012",
        "MIME-Version: 1.0 (Dog Mail 3)",
        "Content-Transfer-Encoding: quoted-printable",
        "X-Spam-Details: rule=notspam policy=default score=0",
        "X-Original-To: dog@example.org",
        "policy=default dog=red house=big",
    ],
)
def test_a_line_of_the_head_of_a_mail_is_one_span(line: str) -> None:
    assert found(line) == [line]


@pytest.mark.parametrize(
    "line", ["Received: a letter from the dog", "Content-Type: the type of a dog", "dog=red house"]
)
def test_a_text_that_begins_as_a_line_of_a_head_has_words(line: str) -> None:
    assert found(line) == []


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"I don\'t see \"it\"", 'I don\'t see "it"'),
        ("I don&#39;t see &quot;it&quot;", 'I don\'t see "it"'),
        ("I don&rsquo;t", "I don\u2019t"),
        (r"I don\u2019t", "I don\u2019t"),
        ('"He says \\"no\\""', '"He says \\"no\\""'),  # two ways, so neither can be written again
        ('a \\\\" b', 'a \\\\" b'),
        ("R&amp;D", "R&amp;D"),
    ],
)
def test_written_quotes_become_signs_and_are_written_again(text: str, plain: str) -> None:
    found, written = plain_quotes(text)
    assert found == plain
    assert with_written_quotes(found, written) == text


@given(texts)
def test_quotes_that_are_made_plain_come_back_as_they_were(text: str) -> None:
    found, written = plain_quotes(text)
    assert with_written_quotes(found, written).casefold() == text.casefold()


@pytest.mark.parametrize(
    ("source", "translation", "wanted"),
    [
        ("Click \u201cthe dogs\u201d now", 'VOIS "LES CHIENS\u201d', "VOIS \u201cLES CHIENS\u201d"),
        ("Click \u201cthe dogs\u201d now", "VOIS \u00ab CHIENS\u201d", "VOIS \u201cCHIENS\u201d"),
        ("Click \u201cthe dogs\u201d now", "VOIS \u201c\u00ab CHIENS", None),
        ("Click \u201cthe dogs\u201d now", "VOIS \u00ab CHIENS \u00bb", "VOIS \u00ab CHIENS \u00bb"),
        ('Click "the dogs\u201d now', 'VOIS "CHIENS\u201d', 'VOIS "CHIENS\u201d'),
        ("The dogs", 'LES "CHIENS\u201d', 'LES "CHIENS\u201d'),
    ],
)
def test_two_quotation_marks_of_different_kinds_are_no_pair(source: str, translation: str, wanted: str | None) -> None:
    assert with_pairs_of_quotes(source, translation) == wanted


def test_markup_and_numbers_are_told_apart_from_words() -> None:
    kinds = [span.kind for span in find_spans("<b> 5 {x} **y**")]
    assert kinds == [SpanKind.TAG, SpanKind.NUMBER, SpanKind.WORD, SpanKind.MARK, SpanKind.MARK]


@given(texts)
def test_spans_are_in_order_and_hold_no_line_break(text: str) -> None:
    place = 0
    for span in find_spans(text):
        assert place <= span.start < span.end <= len(text)
        assert len(text[span.start : span.end].splitlines()) == 1
        place = span.end


class CountedText(str):
    """A text that counts how many of its characters are counted."""

    num_counted = 0

    def count(self, sign: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        self.num_counted += len(self[start:end])
        return super().count(sign, start, end)


@pytest.mark.parametrize("closing", [")", ").", ")]"])
def test_the_brackets_of_an_address_are_counted_once(closing: str) -> None:
    text = CountedText("see http://a.b/c(d" + closing * 100)
    assert found(text) == ["http://a.b/c(d)"]
    assert text.num_counted <= 2 * len(text)


@given(texts)
def test_a_text_without_any_sign_of_a_span_has_none(text: str) -> None:
    assert find_spans(text) == list(spans_module._spans(text))


@given(texts)
def test_masking_hides_the_spans_and_nothing_else(text: str) -> None:
    spans = find_spans(text)
    hidden = masked(text, spans, "\0")
    assert len(hidden) == len(text)
    places = {place for span in spans for place in range(span.start, span.end)}
    assert all(sign == ("\0" if place in places else text[place]) for place, sign in enumerate(hidden))


@given(texts)
def test_every_digit_is_in_a_span(text: str) -> None:
    assert not re.search(r"\d", masked(text, find_spans(text), " "))


@pytest.mark.heavy
@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "<a",
        "<!--",
        "{",
        "a.",
        "a@",
        "`",
        "%",
        "1",
        "/a",
        "http://a",
        "1 ",
        " ",
        "a-1",
        "&a",
        "[[",
        "\\",
        "a\\",
        "\\n",
        "*",
        "*a",
        "&#39;",
        "n",
        ":a:",
        "`a",
        "~~",
        "[a]",
        "[a b=c ",
        "ACAATG",
        "AC-",
    ],
)
def test_the_time_does_not_grow_with_the_square_of_the_length(piece: str) -> None:
    started_at = time.process_time()
    find_spans(piece * 50_000 + "@5")
    assert time.process_time() - started_at < 10.0


@pytest.mark.parametrize(
    "text",
    [
        "{the dog is big}",
        "<the dog is big>",
        "- {The dog, it's big!}",
        '"<The dog is big.>"',
        "[[The dog is big.]]",
        "{{The dog sleeps.}}",
        "<<The dog is big?>>",
    ],
)
def test_a_sentence_inside_marks_is_no_placeholder_and_no_tag(text: str) -> None:
    assert find_spans(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "{name}",
        "{first name}",
        "{{ the user name }}",
        "<b>",
        "<your name>",
        "<input required disabled>",
        "{% if user is here %}",
        "[[the big station]]",
        "<a b='c d e'>",
        "{n, plural, other}",
        "{when, date, short}",
        "I see {a big red dog}",
    ],
)
def test_other_marks_are_protected_with_their_words(text: str) -> None:
    assert find_spans(text)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("[[station]]", True),
        ("[[station]] [[big house]].", True),
        ("{first name}", True),
        ("<your name>", True),
        ("{name}", False),
        ("<b>", False),
        ("<input required disabled>", False),
        ("the [[station]]", False),
        ("[x]", False),
        ("12", False),
    ],
)
def test_words_that_stand_only_inside_marks_could_be_for_people(text: str, is_one: bool) -> None:
    assert is_enclosed(text) is is_one


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{x}dog", ["{x}"]),
        ("dog{x}", ["{x}"]),
        ("${x}dog %(a)sdog dog[[x]]", ["${x}", "%(a)s", "[[x]]"]),
        ("{n}th {n}s v{n} {x} dog, {x}-dog", []),
        ("{x}\u732b\u304c\u3044\u308b \u5171{n}\u4e2a\u6587\u4ef6 {x}\ub2d8\uc774\ub2e4", []),
        ("<%= x %>dog #{x}dog", ["<%= x %>", "#{x}"]),
        ("$A$dog dog$END$ $A$ dog", ["$A$", "$END$"]),
        ("caf&eacute;dog `x`dog @user's", []),
        ("dog", []),
    ],
)
def test_placeholders_that_touch_a_word_are_found_and_endings_are_no_words(text: str, wanted: list[str]) -> None:
    at_words = spans_at_words(text, find_spans(text))
    assert span_texts(text, at_words) == wanted
    assert may_touch_word(text) or not at_words


@given(
    st.lists(
        st.sampled_from(["{x}", "dog", "%(a)s", "[[x]]", " ", "$y", "<%= z %>", "#{q}", "[X1X]", "%s", "th"]),
        max_size=6,
    ).map("".join)
)
def test_a_text_that_is_looked_at_no_further_has_no_placeholder_at_a_word(text: str) -> None:
    assert may_touch_word(text) or not spans_at_words(text, find_spans(text))


def test_a_space_of_html_stands_between_words() -> None:
    for space in ("&nbsp;", "&#160;", "&#xa0;", "&thinsp;"):
        [span] = find_spans(f"I{space}can")
        assert (span.kind, span.start) == (SpanKind.TAG, 1)
    [span] = find_spans("I&copy;can")
    assert span.kind is SpanKind.WORD


def test_a_promise_of_a_line_end_is_kept_before_words_that_hide_it() -> None:
    text = r"The dog\nis red, dir\name."
    promise = Promise.of(text, find_spans(text))
    assert promise.is_kept_by(r"Le chien\nest rouge, dir\name.")
    assert not promise.is_kept_by(r"Le chien est rouge, dir\name.")
    assert not promise.is_kept_by(r"Le chien\nest\nrouge, dir\name.")
    assert not promise.is_kept_by(r"Le chien\nest rouge, dir name.")
