"""What stays in a text: for each kind its name, its pattern, what it is in a sentence, and where it counts."""

import re
from enum import Enum
from typing import NamedTuple

from transformer_cli.text.languages import NAME_OF_LETTERS
from transformer_cli.text.lazy_patterns import lazy_pattern
from transformer_cli.text.normalization import EMOJI


class SpanKind(Enum):
    """How a span may be treated while its sentence is translated."""

    TAG = "tag"
    """Markup, an emoji or a space of HTML such as &nbsp;: it stands between words and is none."""
    MARK = "mark"
    """The stars of bold words and the like: a model that knows them may keep them in their places."""
    WORD = "word"
    """A URL, address, path, placeholder or code: it takes the place of a name in its sentence."""
    NUMBER = "number"
    """Digits: many models copy them, and those that are copied wrongly are repaired."""
    LETTER = "letter"
    """A capital letter that names something, such as a key, or a Roman numeral: many models copy it, and a name takes its place in others."""


class NamedKind(NamedTuple):
    """One kind of what stays in a text."""

    kind: SpanKind
    pattern: str
    is_code: bool = False
    """Whether it counts only in documents and where `--protect` asks for it; others are spans of every text."""


# The endings of domains and of files that are recognised without "http://" or a folder before them.
_DOMAINS = "com|org|net|edu|gov|info|eu|io|app|dev|ch|cn|cz|dk|fr|hu|jp|nl|pl|ru|tv|uk"
# These are words, too: before them stands a name with a digit or a capital letter in it, behind them an end: house3.it
_DOMAINS_LIKE_WORDS = "ai|am|at|be|de|do|es|fi|il|in|is|it|la|me|my|no|pt|ro|se|si|so|to|us"
_BEHIND_DOMAIN = r"[.,;:!?)\]\"'\u00bb\u201d]+(?:\s|\Z)|\s*\Z|\s+(?:and|or|for|to|now|today|und|oder|et|ou|e|o|y)(?!\w)"
_FILE_ENDINGS = (
    "txt|md|pdf|docx?|xlsx?|pptx?|odt|ods|odp|csv|tsv|json|jsonl|xml|x?html?|ya?ml|toml|ini|log|py|js|sh|c|cpp|java|"
    "png|jpe?g|gif|svg|mp3|mp4|wav|avi|mov|zip|gz|tar|exe|iso|"
    "rtf|epub|opf|ncx|tex|bib|rst|po|pot|mo|xlf|xliff|tmx|srt|vtt|ics|eml|ipynb|sql|db|sqlite|parquet|css|scss|tsx?|jsx|mjs|php|rb|rs|"
    "kt|cs|hpp|cfg|conf|lock|bak|tmp|dll|dmg|deb|rpm|apk|jar|rar|7z|bz2|xz|zst|tgz|ico|webp|bmp|tiff?|psd|eps|heic|webm|mkv|"
    "flac|ogg|m4a|ttf|otf|woff2?|"
    "stl|3mf|gcode|dxf|gpx|kml|geojson|qmd|rmd|mdx|adoc|wasm|lua|ps1|msi|aac|m4v|mpe?g|plist|csproj|sln|gradle|pem|crt"
)
# Behind another ending: main.cpp.diff, app.js.map
_SECOND_ENDINGS = (
    "asc|bak|dist|diff|erb|example|gz|j2|map|md5|new|old|orig|patch|rej|sample|sha\\d{1,3}|sig|template|tmpl|tpl|zip"
)
# These are abbreviations behind a single letter, too: *d.h*, *n.Chr*
_PROGRAM_ENDINGS = "h|hh|hxx|cc|cxx|inl|vue|svelte|swift|dart|diff|asm|cmake|qrc"
# Words and units behind a full stop whose space is missing; a name of a program has a low line or a capital letter inside, or is known.
_ENDINGS_LIKE_WORDS = "in|go|am|ac|m"
# A single capital letter behind a full stop is an initial.
_CAPITAL_ENDINGS = _FILE_ENDINGS.upper().replace("|C|", "|")
# Capital letters behind a number that a translation may write otherwise.
_UNITS_IN_CAPITALS = "AM|PM|AD|BC|CE|S|ST|ND|RD|TH|ER|KM|KG|CM|MM|MG|ML|LB|FT|OZ|HZ|[KMGT]B"
_CURRENCIES = "EUR|USD|GBP|CHF|JPY|CNY|AUD|CAD|SEK|NOK|DKK|PLN|CZK|HUF|INR|BRL"
# What a URL may contain. Scripts without spaces between words are left out, because there the sentence goes on
# directly after a URL: U+0E00..U+0E7F Thai, U+3000 and above Chinese, Japanese and Korean.
_IN_URL = r"[^\s<>\"'`{}|\\^\u00ab\u00bb\u2018-\u201e\u0e00-\u0e7f\u2026\u3000-\uffff\U00010000-\U0010ffff]"
_NO_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_NO_CONTROL_BUT_TAB = _NO_CONTROL.replace(r"\x1f", r"\x08\x0a-\x1f")
# Emoji and other pictures such as a star or a telephone.
_PICTURE = r"\u2600-\u27bf\u2b05-\u2b55\U0001f000-\U0001faff"
# Between a number and its unit or the next three digits: the plain, no-break, narrow no-break and thin space.
_SPACE = r"\u00a0\u202f\u2009"
# What stands behind the per cent sign of printf, such as s or .2f.
_SPECIFICATION = r"[#0+-]{0,3}(?:\*|\d{0,9})(?:\.(?:\*|\d{1,9}))?(?:hh?|ll?|[Lzjt])?[diouxXeEfFgGcrs@]"
SPECIFICATION = lazy_pattern(rf"(?<![\d%])(?<!\d[ {_SPACE}])%{_SPECIFICATION}")
"""A specification of printf, or the beginning of a word behind a per cent sign, but not the sign behind a number."""
TOUCHING_SPECIFICATION = lazy_pattern(rf"(?<!%)%{_SPECIFICATION}(?=[A-Za-z])")
"""A specification of printf directly before a letter, or the beginning of a word behind a per cent sign."""
SPECIFICATION_AT_WORD = lazy_pattern(
    rf"(?<!%)%(?:\d{{1,3}}\$)?{_SPECIFICATION}(?=[A-Za-z])"
    rf"|(?<=[^\W\d_])%(?:\d{{1,3}}\$)?{_SPECIFICATION}(?![A-Za-z])"
)
"""A specification of printf directly before or behind a letter, with or without its number, as in %1$sdog."""
# The rest of names that begin with n and a vowel, as in dir\name, \newline, \textbf{\nu}; no other name is likely behind a word: Red\napples.
_REST_OF_N = (
    "a(?:bla|di|me|m|no|nc|r[cr]|sa|sh|t|v)|e(?:ar|at|bu|c[ek]|ed|g|igh|o|r[fmov]|s|t|u|ver(?!y)|w|x[tu])|i(?:ce|ch|ck|col|d|gh|k|l|n[aejo]|tr|x)"
    "|o(?:a|b(?!j)|d|de|i|limits|m|n[eui]|r(?!a\\w|d)|s|t[aei]|thing|v[aei](?!r)|w(?!n))|u[cdlmt]"
)
# What stands behind \n, \r or \t: no letter, a capital letter, a frequent word, or a letter that no name has there. So dir\name and
# \textbf have none, and red\nand has one.
_BEHIND_ESCAPE = (
    r"\Z|[^a-z]|(?:a|and|are|as|at|do|have|he|i|if|is|it|my|of|she|that|they|this|was|we|you)(?![A-Za-z])"
    + "".join(
        rf"|(?<={letter})[{others}](?!\w*(?:\\(?![nrt])|\.\w))"
        for letter, others in {"n": "bcdfhlmpqrstwxz", "t": "bcdfgjklmnpqtvx", "r": "bcdfgjklmnpqrtvwxz"}.items()
    )
    + rf"|(?<=n)(?!{_REST_OF_N})[aeiou][a-z]{{2}}(?!\w*(?:\\(?![nrt])|\.\w))"
)
_FREQUENT_WORDS = "the|and|but|are|was|has|had|she|you|they|this|that|then|there|not|for|with|who|what|when|our|his|her|its|my|your|their|all|some|now|how|why"
# Behind a full stop whose space is missing, as in closed.the; so are e.g. and p.es.
_NOT_DOTTED = rf"{_FREQUENT_WORDS}|no|a|an|in|is|it|he|we|if|of|on|to|la|le|il|lo|gli|der|die|das|ein|und|ich|sie|es|er|el|los|las|les|et|un|une"
# Of an address; behind the question mark of a sentence whose space is missing stands a capital letter or a frequent word.
_PAIR_OF_QUERY = r"[A-Za-z][\w.-]{0,48}=(?:[\w.+:/@~,-]|%[0-9A-Fa-f]{2}){0,99}"
_QUERY = rf"\?(?:{_PAIR_OF_QUERY}|(?!(?:{_NOT_DOTTED}|yes|please)(?!\w))[a-z][\w-]{{0,48}})(?:&(?:{_PAIR_OF_QUERY}|[a-z][\w-]{{0,48}})){{0,20}}"
# Behind the full stop of a name in a program, as in user.name; these begin no sentence.
_MEMBERS = "id|ids|key|keys|name|names|value|values|type|size|length|title|path|url|email|index|items|me(?! too(?!\\w))"
# Names of programs that stand before a full stop also at the beginning of a sentence, as in Object.keys.
_OWNERS = "Array|Console|Date|Document|Error|Event|Function|JSON|Map|Math|Module|Node|Number|Object|Process|Promise|Request|Response|Set|String|System|Window"
# Behind a hyphen stands a key, and no word, as in Meta-analysis.
_MODIFIER_KEYS = "Ctrl|Alt|Shift|Cmd|Meta|Strg"
_KEYS = r"[A-Za-z\d]|F\d\d?|Enter|Return|Tab|Esc|Del|Delete|Space"
# Behind Ctrl stand all letters but the words of one letter, behind Alt and Shift, which are words, too, only capital ones.
_KEYS_BY_SPACES = (
    r"(?<![\w-])(?:(?:Ctrl|Strg|Cmd)(?: (?:Alt|Shift|Cmd|Meta)){0,3} (?:[A-Zb-df-hj-np-tv-xz\d]|Home|End|Up|Down|Left|Right|Insert|F\d\d?|Enter|Return|Tab|Esc|Del|Delete|Space)"
    r"|(?:Alt|Shift)(?: (?:Alt|Shift|Cmd|Meta)){0,3} (?:[B-DF-HJ-NP-Z]|F\d\d?|Enter|Return|Tab|Esc|Del|Delete))(?![\w'\u2019+-]|\.\w)"
)
# A folder whose name has spaces, such as My Files and Program Files (x86): its other words begin with capital letters.
_FOLDERS_OF_WINDOWS = (
    r"(?:(?:[\w.$-]{1,60}[\\/]){0,9}[\w.$-]{1,60}(?: [A-Z\d(][\w.$()-]{0,60}){1,3}[\\/](?=[\w.$%(~]))*"
)
# Of a call: a letter, a number, or a text in quotes.
_ARGUMENT = r"(?:[A-Za-z]|-?\d{1,9}(?:\.\d{1,9})?|'[^'()\n]{0,40}'|\"[^\"()\n]{0,40}\")"
_NAME_AS_ARGUMENT = rf"(?:[A-Za-z_][\w.]{{1,48}}|{_ARGUMENT})"
# Behind a hyphen or full stop of a handle.
_HANDLE_PART = r"[^\W_]\w{0,98}"
# A star or question mark inside a name, as in src/*.py, img_??.png, docs/**, wp_*_options, data-*, java.util.*; those around words mark them.
_NAME_WITH_STAR = (
    rf"(?<![\w*?./\\~-])(?=[\w./~-]{{0,99}}(?:\*|\?[\w.?*]))(?:(?:~|\.{{1,2}})?/)?(?:[\w.*-]{{1,60}}/){{0,9}}[\w.*?-]{{0,99}}\.(?:{_FILE_ENDINGS})(?![\w*-])"
    r"|(?<![\w*./\\~-])(?:[\w.-]{1,60}/){1,9}\*{1,2}(?:/[\w.*-]{1,60}){0,9}(?![\w*])"
    r"|(?<![^\s(\[\"'\u00ab\u201c\u2018>])\*{1,2}/(?:[\w.*-]{1,60}/){0,9}(?:\*{1,2}|[\w.*-]{0,60}\w)(?![\w*])"
    r"|(?<![\w*./\\-])(?:--?)?[A-Za-z][A-Za-z0-9]{0,30}(?:[_-][A-Za-z0-9]{1,30}){0,9}[_-]\*(?:[_-][A-Za-z0-9*]{1,30}){0,9}(?![\w*])"
    r"|(?<![\w*./\\-])\*(?:_[A-Za-z0-9]{1,30}){1,9}(?![\w*]|[^*]{0,200}_\*)"
    r"|(?<![\w*./\\-])(?:[A-Za-z_]\w{1,30}\.){2,9}\*(?![\w*])"
)
# By itself; of two points also with a part that no list has: .fb2.zip, .d.ts, .js.map. In "big .the cat.we" they end sentences.
_ENDING = (
    rf"\.(?:[A-Za-z0-9][\w-]{{0,30}}\.){{0,3}}(?:{_FILE_ENDINGS}|{_CAPITAL_ENDINGS})(?![\w-]|\.\w)"
    rf"|(?:\.(?!(?:{_NOT_DOTTED})(?!\w))[a-z][a-z0-9]{{0,15}}){{2,4}}(?![\w-]|\.\w)"
    rf"|\.(?:NET|{_DOMAINS}|{_FILE_ENDINGS}|{_CAPITAL_ENDINGS})(?![\w-])"
)
# Capital letters inside a name. What ordinary words have, too, is none: a single letter before the first one (iPhone, eBay, nGaeltacht
# of Irish, eThekwini of Zulu) or a vowel (isiZulu, KwaZulu, YouTube, WiFi), bh (bhFuil), names of people (McDonald), the German ending
# (LehrerInnen), and words whose space is missing (houseThe, catThe).
_ENDS_IN_CONSONANT = r"[a-z]{0,30}[b-df-hj-np-tv-xz]"
_NOT_GLUED = (
    r"(?!(?:The|This|That|They|There|Then|And|But|He|She|It|We|You|What|Where|When|Why|How|Who|In|Innen)(?![a-z]))"
)
_NAME_WITH_CAPITALS = (
    r"(?<![\w@#.\\/-])(?:[a-z_]\w{0,30}\.){0,4}(?!bh[A-Z])"
    rf"(?:[a-z]{{2,40}}(?:{_NOT_GLUED}[A-Z][a-z0-9]{{0,30}}){{2,9}}"  # nameOfThing
    rf"|[a-z]{_ENDS_IN_CONSONANT}{_NOT_GLUED}[A-Z][a-z0-9]{{1,30}})"  # getName
    # Its call, as in getName(user); a file of any kind: mainWindow.ui
    rf"(?:\((?:{_NAME_AS_ARGUMENT}(?:, ?{_NAME_AS_ARGUMENT}){{0,9}})?\)|\.(?!(?:{_NOT_DOTTED})(?!\w))[a-z][a-z0-9]{{1,3}}(?![\w(@/-]|\.\w))?(?!\w)"
    r"|(?<![\w@#.\\/-])(?!(?:Mc|Mac|Fitz|Van|Von|Al|El|Ben|Des|Del|Der|Den|Ter)[A-Z])"
    rf"(?:[A-Z][a-z]{{1,30}}(?:{_NOT_GLUED}[A-Z][a-z0-9]{{1,30}}){{2,9}}"  # NameOfThing
    rf"|[A-Z]{_ENDS_IN_CONSONANT}{_NOT_GLUED}[A-Z][a-z0-9]{{1,30}})(?!\w)"  # GitHub
    rf"|\A[A-Z][a-z]{{1,30}}(?:{_NOT_GLUED}[A-Z][a-z0-9]{{1,30}}){{1,9}}\Z"  # TimeMix, a heading
)
# Behind the equals sign of an option.
_VALUE = r"[^\s,;()\[\]\"'<>`{}]{0,98}[^\s.,;:!?()\[\]\"'<>`{}]"
# Behind its colon; a word stands there in a sentence whose space is missing, too: "-Anna:come".
_VALUE_BEHIND_COLON = r"(?:\d[\w.]{0,40}(?<!\.)|\[[\w/|-]{1,60}\]|(?:on|off|true|false|yes|no|none|all|auto)(?!\w))"
# Before and behind an option with one dash in a sentence, where no dash of prose stands.
_WORDS_BEFORE_OPTION = (
    "use Use using Using with With the The and or pass Pass add Add specify Specify option options flag flags switch argument parameter"
    " opzione opci\u00f3n Option Parameter Schalter param\u00e8tre parametro par\u00e1metro"
)
_BEFORE_OPTION = "|".join(rf"(?<=\b{word} )" for word in re.findall(r"\w+", _WORDS_BEFORE_OPTION))
_NAME_OF_OPTION = r"[A-Za-z][A-Za-z0-9]{1,40}(?:[-_.][A-Za-z0-9]{1,40}){0,9}"
_VARIABLE = r"(?:[A-Z][A-Z0-9_]{1,40}|<[\w-]{1,40}>|\[[\w<>|-]{1,40}\])"
# With one dash. Those of prose enclose words, or stand at the beginning of what somebody says.
_SHORT_OPTION = (
    # -h, --help
    r"(?<![^\s(\[\"'\u00ab\u201c\u2018/|>])-[A-Za-z0-9](?=, ?--[a-z])"
    # In a list of options: -wait  waits for the dog; -o FILE  writes to FILE; -x a frame
    rf"|(?<!\S)-(?:{_NAME_OF_OPTION}|[A-Za-z0-9])(?=(?: {_VARIABLE})?(?: ?\t| {{2,}}\S))(?: {_VARIABLE})?"
    r"|(?<![^\n])-[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ](?= [a-z])"
    # Use -wait; the -silent option; -wait -silent. Names without a vowel are of the kind "command".
    rf"|(?:{_BEFORE_OPTION})-(?!(?:{_NOT_DOTTED})(?!\w))(?=[\w.-]{{0,60}}[aeiouyA-Z]){_NAME_OF_OPTION}(?![\w'\u2019-])(?![^{_NO_CONTROL}]{{0,200}}?[^\s-]-(?:[\s.,;:!?]|\Z))"
    rf"|(?<=[\w,(] )-(?:{_NAME_OF_OPTION}|[a-z])(?:(?: --?{_NAME_OF_OPTION}){{1,9}}(?![\w-])| <[\w-]{{1,40}}>|(?= (?:option|flag|switch|argument|parameter)s?(?!\w)))"
)
# An option of a command. A dash before words in the place of a long one is none: "it is --I think-- big", "--Anna", "-I am here."
_OPTION = (
    rf"(?<![^\s(\[\"'\u00ab\u201c\u2018/|])--[a-z][a-z0-9]{{0,40}}(?:[-_.][a-z0-9]{{1,40}}){{0,9}}(?:={_VALUE}|:{_VALUE_BEHIND_COLON})?(?![\w-])(?![^{_NO_CONTROL}]{{0,200}}?[^\s-]--(?:[\s.,;:!?]|\Z))"
    # -name=value, -name:1; behind a capital letter the colon may be that of a person who speaks: -Anna:yes
    r"|(?<![^\s(\[\"'\u00ab\u201c\u2018/|>])-(?:(?=[a-z][^\s=]{0,99}:)|(?=[^\s:]{1,99}=))"
    rf"[A-Za-z]\w{{0,40}}(?:[-_.][A-Za-z0-9]{{1,40}}){{0,9}}(?:={_VALUE}|:{_VALUE_BEHIND_COLON})(?![\w-])"
    r"|(?<=[\w,(] )-[B-DF-HJ-NP-TV-XZb-df-hj-np-tv-xz](?![\w'\u2019-])"
    r"|(?<![\w-])-[A-Za-z](?=[/|]--[a-z])"  # of -o/--output
    r"|(?<![^\s(\[\"'\u00ab\u201c\u2018/|>])-(?:[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,9}|D[A-Z][A-Z0-9]{3,40})(?![\w-])"  # -DUSE_DOG, -DNDEBUG
)
# As programs write the form of a date: YYYY-MM-DD, dd.MM.yyyy HH:mm:ss, yyyyMMdd; a field of two letters is among those of one (M/D/YY).
_FIELD_OF_DATE = "(?:[Yy]{4}|[Yy]{2}|M{1,4}|[Dd]{1,2}|[Hh]{1,2}|m{1,2}|s{1,2})"
_DATE_FORMAT = (
    rf"(?<![\w./:-])(?=[A-Za-z./:_-]{{0,20}}?(?:[Yy]{{2}}|MM|[Dd]{{2}}|[Hh]{{2}}|mm|ss)){_FIELD_OF_DATE}"
    rf"(?:[-./_T]{_FIELD_OF_DATE}|:(?:{_FIELD_OF_DATE}|SS)|[.,:;](?:ms|mmm|FF|ff?f?|zzz|SSS)){{1,6}}Z?(?!\w|[-./:]\w)"
    r"|(?<!\w)(?:YYYY|yyyy)MM(?:DD|dd)(?:[-_T]?HHmm(?:ss)?)?(?!\w)"
)
# Pages of a browser, such as about:config.
_PAGE_OF_BROWSER = "(?<!\\w)about:(?:addons|blank|cache|config|debugging|home|logins|memory|newtab|performance|plugins|policies|preferences|processes|profiles|support|telemetry)(?!\\w)"
# Attributes of Angular, Vue, Alpine, htmx and HTML in a sentence. Others with such beginnings are words: x-ray, v-neck, data-driven.
_ATTRIBUTE = (
    r"(?<![\w@#.\\/<-])(?:(?:ng|hx)-[a-z]{2,20}(?:-[a-z]{1,20}){0,3}|data-(?:bs|cy|lang|src|test|turbo|wp)-[a-z]{1,20}(?:-[a-z]{1,20}){0,2}"
    r"|v-(?:bind|cloak|else(?:-if)?|for|html|if|memo|model|on|once|pre|show|slot|text)"
    r"|x-(?:bind|cloak|data|effect|for|html|id|if|ignore|init|model|modelable|on|ref|show|teleport|text|transition)"
    r"|data-(?:action|attr|controller|href|id|src|target|testid|toggle|uri|url)"
    r"|aria-(?:atomic|busy|checked|controls|current|describedby|disabled|expanded|haspopup|hidden|invalid|label|labelledby|live|modal"
    r"|multiline|orientation|owns|placeholder|pressed|readonly|required|roledescription|selected|sort|valuemax|valuemin|valuenow|valuetext))(?![\w-])"
)
# Words behind a full stop without its space, which begin a sentence of some language: in Rome.They are
_BEGINNINGS = (
    "The|This|That|These|Those|They|There|Then|And|But|He|She|It|We|You|What|Where|When|Why|How|Who|In|An|As|At|If|Is|No|Not|Now|On|Or|So|To|"
    "Its|His|Her|My|Our|Your|Their|For|From|With|Please|Der|Die|Das|Den|Dem|Des|Ein|Eine|Er|Sie|Es|Wir|Ich|Ihr|Im|Am|Auf|Aber|Und|Dann|Da|"
    "Wenn|Mit|Nach|Bei|Zu|Zwei|Drei|Von|Nun|Doch|Auch|Nicht|Man|Bitte|Le|La|Les|Un|Une|Il|Elle|Ils|Elles|Nous|Vous|Je|Tu|Ce|Cette|Et|Mais|Dans|Lo|Gli|Una|"
    "Ma|Non|Si|El|Los|Las|Pero|En|De|Het|Een|Ik|Hij|Zij|Dat|Dit|Os|Ele|Ela|Eu"
)
# Names of a library in a sentence, as in Aspose.Words and System.Text.Json; those before it are no abbreviation such as Prof.Smith.
_DOTTED_NAME = (
    r"(?:(?<=[\w,;:(] )(?<![.!?] )|\A(?=[\w.]{3,99}\Z))(?!(?:Prof|Capt|Dott|Corp|Mlle|Miss|Sept|Ing|Inc|Ltd|Mrs|Gen|Col|Rev|Vol|Fig|Abb|Art|Nr)\.)"
    rf"[A-Z][A-Za-z]{{2,30}}\d?(?:\.(?!(?:{_BEGINNINGS})(?!\w))[A-Z][A-Za-z0-9]{{1,30}}){{1,6}}(?![\w@/-]|\.\w)"
)
_RAISED = "\u00b9\u00b2\u00b3\u2070\u2074-\u2079"
_LETTER_OF_WORD = rf"[^\W\d_{_RAISED}]"
# Programs whose options stand directly behind their names; none of them is a frequent word of a sentence before a dash.
_PROGRAMS = (
    "apt|apt-get|awk|brew|chmod|chown|cp|curl|df|dnf|docker|du|ffmpeg|gcc|git|grep|gunzip|gzip|java|javac|kubectl|ln|ls|mkdir|mv|npm|npx"
    "|pip3?|ps|python3?|rm|rsync|scp|sed|ssh|sudo|tar|unzip|wget|xargs|xz|yum|zstd"
)
# The bases of a nucleic acid: ACAATGCAAA, ACAATGC...AAA, 5'-GATTACA-3'
_BASES = r"(?<!\w)(?=[ACGTU.\u2026-]{0,99}[ACGTU]{6})[ACGTU]{2,}+(?:(?:\.{2,6}|\u2026|-)[ACGTU]{2,}+){0,9}(?!\w)"
_NAME_OF_CALL = r"[A-Za-z_]\w{0,48}"
_VALUE_OF_SETTING = r"[\w./:+-]{0,98}\w"
_CONSTANT = r"[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,9}"
# Of CMake and C: if (WIN32), set(USE_DOG "a b"), ADD_DOG( dog PUBLIC ). In other brackets stand words, as in USE_DOG (a dog).
_CALL_OF_BUILD = (
    rf"(?<![\w.])(?:(?:IF|ELSEIF|WHILE|UNLESS) ?\((?:NOT )?[A-Z][A-Z0-9_]{{2,40}}\)"
    rf"|(?:if|elseif|while) ?\( ?!?(?:NOT )?(?:{_CONSTANT}|[A-Z]{{2,20}}\d{{1,4}}) ?\)"
    rf"|{_CONSTANT}\([^()\n]{{1,200}}\)|[A-Za-z_]\w{{1,48}}\( ?(?:{_CONSTANT}|\$\{{\w{{1,60}}\}})(?: [^()\s]{{1,99}}){{0,9}} ?\))(?!\w)"
)
# A method of HTTP and its path: GET /dogs, a POST request; POSTs
_METHOD = (
    r"(?<![\w/-])(?:(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)(?: /(?:[\w./{}:?=&%@~+*-]{0,200}[\w/}*])?(?![\w/])|(?= https?://)"
    r"|(?= (?:requests?|methods?|endpoints?|calls?)(?!\w)))|(?:GET|POST|PUT|PATCH|DELETE)s(?![\w-]))"
)
# An endpoint before what a sentence says of it. Subtitles have lines in italics behind such a sign.
_SAID_OF_ENDPOINT = (
    "is|are|has|can|will|must|should|supports|supporting|returns?|returning|endpoint|route|command|accepts?|accepting|handles?|shows?|lists?|requires?|takes?"
    "|gives?|gets?|sends?|page|path"
)
_ENDPOINT = (
    rf"(?<![^\n])/(?!(?:{_NOT_DOTTED}|what|where|when|why|who|how|there|everything|nothing|everyone|someone|somebody|nobody)(?!\w))[a-z][a-z0-9_-]{{2,98}}"
    rf"(?=,? (?:{_SAID_OF_ENDPOINT})(?!\w)|:? [\u2013\u2014-] )(?![^/{_NO_CONTROL}]{{0,200}}[^/\s{_NO_CONTROL}]/(?:\s|\Z))"
)
# A command behind the prompt of DOS: a whole line, or in a sentence with the names of its files.
_COMMAND_OF_DOS = (
    rf"(?<![^\n])[A-Za-z]:(?:\\[^\s<>|\"*?]*)?>(?=[\w.\\/])[^{_NO_CONTROL}]*"
    r"|(?<!\w)[A-Z]:(?:\\[^\s<>|\"*?]*)?>\w[\w\\/.-]*(?: [\w\\/-]+\.\w{2,4}(?!\w)){0,9}"
)
# With a low line, capital letters or square brackets: the words of hund=dog are a list of words.
_NAME_OF_SETTING = (
    r"(?:[A-Za-z]\w{0,40}_\w{1,40}|[a-z]{1,40}[A-Z]\w{0,40}|[A-Z]{2,40}\d{0,3}|[a-z]\w{0,40}\[\w{0,30}\])"
)
KINDS: dict[str, NamedKind] = {
    # A line end or tab as a program writes it, unless it may begin a name; a backslash before a mark.
    "escape": NamedKind(
        SpanKind.TAG,
        (
            rf"(?:\\{{1,2}}[nrt])+(?={_BEHIND_ESCAPE})"
            r"|(?<![^\W_])(?:\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}))+(?![^\W_])"
            r"|(?<=[^\W\d_]|[.!?:;,)])%n(?=[^\W\d_])"
            r"|\\(?!\\?\w|\([A-Za-z_][\w.]{0,98}\))[^\w\s]?"
        ),
    ),
    # A star by itself, as in "Fields with * are required"; at the beginning of a line it is the mark of a list.
    # The raised number of a footnote, behind a word or a mark; the units of m\u00b2 and cm\u00b3 are shorter words.
    "sign": NamedKind(
        SpanKind.TAG,
        (
            r"(?<=\S[ \t])\*(?=\s|\Z)"
            rf"|(?:(?<={_LETTER_OF_WORD}{{3}})(?<!sin|cos|tan|log)|(?<=[.,;:!?\u2026)\]\"'\u2019\u201d\u00bb]))"
            rf"[{_RAISED}]{{1,3}}(?!\w)"
        ),
    ),
    # Around bold, slanted and struck-out words.
    "mark": NamedKind(
        SpanKind.MARK,
        (r"(?<![\w*])\*{1,3}(?=\w[^*]{0,200}\*)|(?<=[\w.,:;!?)\]])(?:\*{2,3}(?!\*)|\*(?![\w*]))|(?<!~)~~(?!~)"),
    ),
    "tag": NamedKind(
        SpanKind.TAG,
        (
            rf"<!--(?:(?!<!--)[^{_NO_CONTROL}]){{0,2000}}?-->"
            # Behind a colon also a value as of MiniMessage: <click:open_url:"https://example.org">, <gradient:#ff0000:#00ff00>.
            # <if-!name> and <!bold> mean the opposite.
            rf"|</?!?[A-Za-z_]\w{{0,49}}(?:-!?\w{{1,49}}){{0,4}}>"
            rf"|</?(?:[A-Za-z_][\w:.-]{{0,99}}(?:(?:[ \t/]|(?<=:)[\"'#])[^<>{_NO_CONTROL}]{{0,2000}})?|\d{{1,9}}[ ]?/?)>"
            # Of games, with a value behind the name: <color=#ff0000>, <size=20>, <link="house">, <#ff0000>
            rf"|<[A-Za-z][\w-]{{0,40}}=(?:\"[^\"<>{_NO_CONTROL}]{{0,300}}\"|'[^'<>{_NO_CONTROL}]{{0,300}}'|[^\s<>\"'{_NO_CONTROL}]{{1,99}})>|<\#[0-9A-Fa-f]{{3,8}}>"
            # In square brackets, as in forums, games and WordPress: [b]red[/b], [url=https://example.org], [gallery ids="1,2"], [*]
            rf"|\[(?P<bbcode>[A-Za-z][\w-]{{0,40}})(?:[ =][^\[\]{_NO_CONTROL}]{{1,300}})?\](?=[^{_NO_CONTROL}]{{0,500}}?\[/(?P=bbcode)\])"
            rf"|\[/[A-Za-z][\w-]{{0,40}}\](?!\()|\[\*\](?![(\[:])"
            rf"|\[[A-Za-z][\w-]{{0,40}}(?:=[^\[\]{_NO_CONTROL}]{{1,300}}|(?:[ ][\w-]{{1,40}}=(?:\"[^\"\[\]{_NO_CONTROL}]{{0,300}}\"|'[^'\[\]{_NO_CONTROL}]{{0,300}}'|[^\s\[\]\"']{{1,99}})){{1,20}}[ ]?/?)\](?![(\[:])"
        ),
    ),
    # With the signs that choose a colour or join several pictures to one.
    "picture": NamedKind(
        SpanKind.TAG,
        (
            rf"(?:[0-9#*]\ufe0f?\u20e3|[{EMOJI}]\ufe0f|[{_PICTURE}])"
            rf"(?:[{_PICTURE}\ufe0e\ufe0f\u20e3\U000e0020-\U000e007f]|\u200d[{EMOJI}])*"
        ),
    ),
    # Spaces of HTML.
    "space": NamedKind(SpanKind.TAG, r"&(?:nbsp|ensp|emsp|thinsp|\#160|\#[xX][aA]0);"),
    "code": NamedKind(
        SpanKind.WORD,
        (
            # The quotes of ``these words'' and `those' are no code.
            # ``x`` of reStructuredText and Markdown.
            rf"(?<!`)(?P<ticks>`{{2,9}})(?![\s`])(?:(?!(?P=ticks))[^{_NO_CONTROL}]){{1,199}}(?<!\s)(?P=ticks)(?!`)"
            # The line before a block of code, with its language: ```python
            r"|(?<!\S)`{3,9}[a-z][\w+#.-]{0,30}\s*\Z"
            # A name before it is a role of reStructuredText: :c:func:`x`. A low line behind it makes a link: `x`_, `x`__.
            rf"|(?:(?<![\w:]):(?:[A-Za-z][\w.+-]{{0,30}}:){{1,3}})?`(?![\s`])[^`{_NO_CONTROL}]{{0,199}}(?<!\s)`(?:_{{1,2}}(?!\w))?"
            # With a tab in it, which parts the columns of a line everywhere else: no letter touches it, as in it`s.
            rf"|(?<![\w`])`(?![\s`])[^`{_NO_CONTROL_BUT_TAB}]{{0,199}}(?<!\s)`(?![\w`])"
            r"|&(?:[A-Za-z][A-Za-z0-9]{1,31}|\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6});"
        ),
    ),
    "placeholder": NamedKind(
        SpanKind.WORD,
        (
            # {% if x == {"a": 1} %}, {{{name}}}, {{name}}, ${{name}}; a template may have long ones.
            rf"\{{%(?:(?!%\}})[^{_NO_CONTROL}]){{0,2000}}%\}}|\{{\#(?:(?!\#\}})[^{{{_NO_CONTROL}]){{0,2000}}\#\}}"
            rf"|\{{\{{\{{[^{{}}{_NO_CONTROL}]{{0,2000}}\}}\}}\}}|\$?\{{\{{[^{{}}{_NO_CONTROL}]{{0,2000}}\}}\}}"
            rf"|[$\#%@]?\{{[^{{}}{_NO_CONTROL}]{{0,99}}\}}"  # {name}, {0:.2f}, {0,number}, ${x}, %{x}, #{x}
            rf"|\[\[[^\[\]{_NO_CONTROL}]{{1,99}}\]\]"  # [[name]]
            r"|\[X\d{1,9}X\]"  # of Weblate
            # Of TinyButStrong: [a.name], [onshow..now;frm='yyyy'], [onload;block=tbs:p;when [var.x]=0]; [a.b](url) is a link.
            rf"|\[[A-Za-z_]\w{{0,48}}(?:\.{{1,2}}[A-Za-z_]\w{{0,48}}){{1,9}}\](?![(\[:])"
            rf"|\[[A-Za-z_]\w{{0,48}}(?:\.{{1,2}}[A-Za-z_]\w{{0,48}}){{0,9}};[a-z]{{2,20}}=(?:[^\[\]{_NO_CONTROL}]|\[[^\[\]{_NO_CONTROL}]{{1,99}}\]){{0,500}}\]"
            # Of docx-templates: +++FOR film IN films+++, +++= film.title+++, +++$film.title+++
            rf"|(?<!\+)\+\+\+ ?(?:(?:QUERY|CMD_NODE|ALIAS|FOR|END-FOR|IF|END-IF|INS|EXEC|IMAGE|LINK|HTML)(?![\w-])|[=!*$])"
            rf"(?:(?!\+\+\+)[^{_NO_CONTROL}]){{0,500}}\+\+\+"
            rf"|<%[^<>%{_NO_CONTROL}]{{1,2000}}%>|\[%[^\[\]%{_NO_CONTROL}]{{1,200}}%\]"  # <%= name %>, [% name %]
            r"|<<[A-Za-z_][\w.-]{0,98}>>"  # <<name>>
            rf"|\*\|[^|*{_NO_CONTROL}]{{1,99}}\|\*"  # *|NAME|*
            r"|\$\$[A-Za-z_][\w@]{0,98}\$\$|\$[A-Za-z_][\w@]{0,98}\$"  # $NAME$ of browser extensions, also directly before a letter
            r"|\$\([A-Za-z_][\w.:-]{0,98}\)|\\\([A-Za-z_][\w.]{0,98}\)"  # $(name), \(name)
            r"|(?<![\w@])@{1,2}[A-Za-z_][\w.-]{0,98}@{1,2}(?![\w@])"  # @name@
            r"|(?<![\w#&])\#{1,3}[A-Za-z_]\w{0,98}\#{1,3}(?![\w#])"  # #name#, ###NAME###
            r"|(?<![\w~])~(?:[A-Z][A-Z0-9_]{1,98}|[a-z]\w{0,48}_\w{1,48})~(?![\w~])"  # ~NAME~, ~a_name~; but ~word~ is struck out
            r"|(?<![\d%])%<[A-Za-z_]\w{0,98}>[#0+-]{0,3}\d{0,9}(?:\.\d{1,9})?[A-Za-z](?![A-Za-z])"  # %<name>s
            r"|(?<![\d%])[$%]\[(?:[A-Za-z_][\w.]{0,98}|\d{1,3})\](?:[A-Za-z](?![A-Za-z]))?"  # %[1]d, $[name]
            rf"|%\([^()%{_NO_CONTROL}]{{1,99}}\)[#0+-]{{0,3}}\d{{0,9}}(?:\.\d{{1,9}})?[A-Za-z]"  # %(x)d, %(a.b)s
            r"|(?<![\w%])%[A-Za-z_][\w.-]{0,98}%%?(?!\w)"  # %name%
            r"|(?<![\w%])%%[A-Za-z_][\w.-]{0,98}%%?(?!\w|%?[A-Za-z])"  # %%name%%, but not the beginning of %%s%%d or %%s%d
            rf"|(?<!%)%\d{{1,3}}\${_SPECIFICATION}"  # %1$s, also directly before a letter
            rf"|(?<![\d%])%{_SPECIFICATION}(?![A-Za-z])"
            r"|(?<![\d%])%(?:p|I(?:32|64)[dioux])(?![A-Za-z])"  # %p, %I64d
            r"|(?<![\d%])%(?:L?\d{1,2}(?![\d%])|L?n(?![A-Za-z]))"  # %1, %n of Qt
            r"|(?<![\d%])%%(?:(?:\(\w{1,98}\)|\d{1,3}\$)?[diouxXeEfFgGcs@](?![A-Za-z])|(?!%))"  # %%, and %%s, which shows %s
            r"|(?<!\w)@?__[A-Za-z0-9](?:[\w.-]{0,97}[A-Za-z0-9])?__(?!\w)"  # __name__, @__name__
            r"|(?<![^\s(\[\"'\u00ab\u201c\u2018>.,;!?]):(?:[a-z]\w{1,98}|[A-Z]\w{2,98}):?(?![\w:])"  # :name, :smile:
            r"|(?<=[\s(\[\"'\u00ab\u201c\u2018>])![a-z]\w{2,98}(?![\w:!])"  # !name, but not "!and" at the beginning of a text
            rf"|\$t\([^(){_NO_CONTROL}]{{1,99}}\)"  # $t(name)
            r"|(?<!\w)@(?:\.\w{1,20})?:\w[\w.-]{0,98}(?<![.-])"  # @:name
            r"|\$(?:[A-Z_][A-Z0-9_]{1,48}|\{[A-Z_][A-Z0-9_]{0,48}\})(?:/[\w@+-]{1,99}(?:\.[\w@+-]{1,99}){0,4}){1,9}/?"  # $HOME/bin/x
            r"|\$[A-Za-z_]\w{0,99}(?:(?:->|\.(?=[a-z]))[A-Za-z_]\w{0,98}){0,9}"  # $x, $x->y, $x.y
        ),
    ),
    "address": NamedKind(
        SpanKind.WORD,
        (
            rf"(?<![\w.+-])[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,8}}(?::[\w.~/-]{{1,99}}\.git(?!\w))?"
            rf"|(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.-]{{1,15}}://|www\.(?=[^\W_])|mailto:|tel:){_IN_URL}+"
            r"|(?<![A-Za-z0-9])(?:https?|s?ftp|file|git|smb|ssh|wss?)://"  # the beginning of an address alone
            rf"|(?<![\w@.-])(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?:{_DOMAINS})(?![\w-])(?:[/?#]{_IN_URL}*)?"
            rf"|(?<![\w@.-])(?=[\d-]{{0,60}}[A-Za-z])(?=[A-Za-z0-9-]{{0,62}}(?:\d|[a-z][A-Z]))[A-Za-z0-9-]{{2,63}}\."
            rf"(?:{_DOMAINS_LIKE_WORDS})(?:/{_IN_URL}*|(?={_BEHIND_DOMAIN}))"
        ),
    ),
    "path": NamedKind(
        SpanKind.WORD,
        (
            rf"{_COMMAND_OF_DOS}|(?<![\w\\])[A-Za-z]:\\{_FOLDERS_OF_WINDOWS}[^\s<>|\"*?]*"  # C:\Users\me, C:\My Files\me
            rf"|(?<![\w\\/.:-])[A-Za-z]:/(?:{_FOLDERS_OF_WINDOWS}[\w$%(~][^\s<>|\"*?]*|(?<=[A-Z]:/)(?=[\s.,;!?)]|\Z))"  # C:/data, C:/
            rf"|(?<![\w\\])[\w.$-]{{0,99}}+(?:\\{{1,2}}(?![nrt](?={_BEHIND_ESCAPE}))[A-Za-z_][\w.$-]{{0,99}}+\*?)+\\?"  # dir\name, \\host\x, \textbf
            r"|(?<![\w.~/])(?:~|\.{1,2})/[\w.@+/*-]*"  # ~/x, ./x, ../*.x
            rf"|(?<![\w.~/])/[\w.@+-]+/[\w.@+/*-]*(?:{_QUERY})?"  # /usr/bin, /usr/lib/*.a, /the/house?login
            rf"|(?<=\}})/[\w.-]{{1,99}}{_QUERY}|(?<=[\w}}])[?&]{_PAIR_OF_QUERY}(?:&{_PAIR_OF_QUERY}){{0,20}}"  # behind {{url}}, index.php
            # /help, a command of a chat, but not in Enable (1) /disable (0); in subtitles, a line in italics begins so, or stands between two slashes.
            rf"|(?<=[\s(\[\"'\u00ab\u201c\u2018>])(?!(?<=\([01]\) )/[a-z]+ \([01]\))/[a-z][a-z0-9_-]{{2,98}}(?::{_VALUE_BEHIND_COLON}(?![\w/])|(?![\w/.]))(?![^/{_NO_CONTROL}]{{0,200}}[^/\s{_NO_CONTROL}]/(?:\s|\Z))"
            rf"|\A/[a-z][a-z0-9_-]{{2,98}}(?=\s*\Z)|{_ENDPOINT}"
            rf"|(?<![\w.~/-])(?:[\w.-]{{1,99}}/){{0,9}}[\w-]{{1,99}}(?:\.[\w-]{{1,99}}){{0,4}}\.(?:{_FILE_ENDINGS}|{_FILE_ENDINGS.upper().replace('|C|', '|')})(?:\.(?:{_SECOND_ENDINGS}))?(?:\#[A-Za-z0-9][\w.-]{{0,98}})?(?![\w-])"  # report.pdf, main.cpp.diff, word/document.xml#part
            # Headers, templates of a build and the like; at the end also *.go and *.m
            rf"|(?<![\w.~/@-])(?:[\w.-]{{1,99}}/){{0,9}}(?=[\w-]{{0,98}}[A-Za-z])(?:[\w-]{{2,99}}(?:\.[\w-]{{1,99}}){{0,4}}\.(?:{_PROGRAM_ENDINGS})"
            rf"|(?:(?=\w{{0,98}}[a-z\d]_[a-z\d])[\w-]{{2,99}}|[\w-]{{1,99}}\.(?:{_PROGRAM_ENDINGS}|{_FILE_ENDINGS})|Makefile|configure)\.(?:{_ENDINGS_LIKE_WORDS})"
            r"|[a-z][\w-]{1,98}\.(?:go|m)(?=[.,;:!?)\]\"'\u00bb\u201d]*\Z))(?![\w-]|\.\w)"
            # A path with a name of a program in it, or of two folders: test_data/files, prints/small/square.vox
            r"|(?<![\w.~/:#@-])(?=[\w./-]{0,200}?[A-Za-z0-9]_[A-Za-z0-9])(?:[A-Za-z0-9][\w.-]{0,98}/){1,9}(?:[A-Za-z0-9][\w-]{0,98}(?:\.[\w-]{1,99}){0,4})?(?![\w/])"
            rf"|(?<![\w.~/:#@-])[A-Za-z0-9][\w.-]{{0,98}}/(?=[\w-]{{0,99}}-)[A-Za-z0-9][\w-]{{0,98}}\.(?!(?:{_NOT_DOTTED}|they)(?!\w))[a-z][a-z0-9]{{0,7}}(?![\w/-])"
            rf"|(?<![\w.~/:#@-])(?:[A-Za-z0-9][\w.-]{{0,98}}/){{2,9}}[A-Za-z0-9][\w-]{{0,98}}\.(?!(?:{_NOT_DOTTED})(?!\w))[a-z][a-z0-9]{{0,7}}(?![\w/-])"
            r"|(?<![\w@#&/])@[A-Za-z0-9][\w.-]{0,98}/[A-Za-z0-9][\w.-]{0,98}(?:@[\w.^~-]{1,40})?"  # @org/package
            # Of DocFX: @System.String?text=dog
            rf"|(?<![\w@#&])@[A-Z]\w{{1,60}}(?:\.(?!(?:{_BEGINNINGS}|Thanks|Hello|Yes|Well)(?!\w))[A-Z]\w{{1,60}}){{1,9}}(?:\?[\w=&.-]{{1,99}})?"
            r"|(?<![\w@#&!])[@#!][\w.=-]{1,64}:[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}(?![\w-])"  # @name:example.org of Matrix
            r"|(?<![\w@#&])@[\w.-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"  # @name@example.org
            rf"|(?<![\w@#&])@[^\W\d_]\w{{0,99}}(?:(?:-|\.(?=[^\W\dA-Z_])){_HANDLE_PART}){{0,9}}"  # @name, @a-name, @a.name
            rf"|(?<![\w@#&])\#[^\W\d_]\w{{0,99}}(?:[-/]{_HANDLE_PART}){{0,9}}"  # #topic, #my-topic, #topic/part
            r"|(?<![\w./@#-])[A-Za-z0-9][\w-]{0,98}/[\w.-]{1,99}(?:\#\d{1,9}|@[0-9a-f]{7,40})(?!\w)"  # user/repository#123
        ),
    ),
    # Names of files with a star, names of programs, keys pressed together, versions, and words that begin with letters and have digits.
    "name": NamedKind(
        SpanKind.WORD,
        rf"{_CALL_OF_BUILD}|{_DATE_FORMAT}|"
        r"(?<![\w*./\\])\*\.(?:\*|\w{1,20})(?:\.\w{1,20}){0,3}(?:;[ ]?\*\.(?:\*|\w{1,20})){0,50}(?![\w*]|/[*.]|\.\w+/[*.])"  # *.txt, *.*, *.png;*.jpg
        rf"|{_NAME_WITH_STAR}"
        # a.name, an_object.a_name, in a sentence An.object; e.g. and p.m. have no part of two letters, behind an abbreviation stands a
        # word, x of closed.x:We is the label of a sentence, and of big.please nobody knows whether a space is missing.
        r"|(?<![\w@#.\\/:-])(?!(?:etc|art|nr|no|ca|bzw|vgl|sig|p)\.)(?=\w{1,50}\.\w{2}|\w{2})"
        r"(?:(?:(?<=[\w,;] )|(?<=[(\[\"'«“]))(?=[A-Z])|(?=[a-z]\.)|(?=\w{1,50}\.\w{1,50}\.\w)|(?=[\w.]{0,100}[\d_]))"
        rf"[A-Za-z_][a-z0-9_]{{0,48}}(?:\.(?!(?:{_NOT_DOTTED})(?!\w)|[a-z]{{1,3}}(?:\s?[=:]|\s+[A-Z]|\Z))[a-z_][a-z0-9_]{{0,48}}){{1,4}}(?![\w@/(-]|\.\w)"
        # user.name, read.me, Object.keys at the beginning of a sentence
        rf"|(?<![\w@#.\\/:-])(?:[a-z][a-z0-9]{{1,48}}\.(?:{_MEMBERS})|(?:{_OWNERS})\.(?:{_MEMBERS}|(?!(?:{_NOT_DOTTED})(?!\w))[a-z]{{2,20}}))(?![\w@/(-]|\.\w)"
        # np.concatenate, console.log: of libraries whose names are no words
        r"|(?<![\w@#.\\/:-])(?:(?:np|pd|plt|tf|nn|sns|sys|fs|df|ctx|cfg|numpy|pandas|axios|lodash)\.[a-z_]\w{1,48}|console\.(?:error|info|log|table|warn))(?![\w@/(-]|\.\w)"
        r"|(?<![\w@#.\\/:\[-])(?!e\.g|i\.e|[apk]\.m|z\.b|d\.h|u\.[aks]|n\.b|o\.k)[a-z]\.[a-z](?![\w@/(.-])"  # x.y
        r"|(?<![\w.])(?:[A-Za-z_]\w{0,48}[.:]){0,4}[A-Za-z_]\w{0,98}\(\)"  # call(), an_object.call()
        r"|(?<![\w:])[A-Za-z_]\w{0,48}(?:::~?[A-Za-z_]\w{0,48}){1,9}(?:\(\))?(?!\w)"  # std::vector
        r"|(?<![\w.@])(?:com|org|net|io)(?:\.[A-Za-z_]\w{0,48}){2,9}(?!\w)"  # com.example.program
        rf"|{_DOTTED_NAME}|{_ATTRIBUTE}|{_PAGE_OF_BROWSER}"
        r"|(?<![\w-])X(?:-[A-Z0-9][A-Za-z0-9]{0,30}){2,9}(?![\w-])"  # X-Forwarded-For, a header of HTTP
        r"|(?<![\w=&?.-])[a-z]\w{1,48}=(?:-?\d[\d.]{0,20}(?<!\.)|[Tt]rue|[Ff]alse|null|None)(?![\w=])"  # count=10
        # snake_case, an_object.snake_case and its call with names: a_call(name, other)
        r"|(?<![\w@#.\\/-])(?:[A-Za-z_]\w{0,48}\.){0,4}[A-Za-z][A-Za-z0-9]{0,50}(?:_{1,2}[A-Za-z0-9]{1,50}){1,20}"
        rf"(?:\((?:{_NAME_AS_ARGUMENT}(?:, ?{_NAME_AS_ARGUMENT}){{0,9}})?\))?(?!\w|\.[A-Za-z_]\w{{0,48}}\()"
        rf"|{_NAME_WITH_CAPITALS}"
        r"|(?<!\w)(?:[A-Za-z]\+\+|[CFJ]\#)(?![\w+#]|\.\w)"  # C++, C#
        rf"|{_BASES}"
        # Frequent ions, and all with raised signs: Na+, Ca\u00b2\u207a, SO\u2084\u00b2\u207b
        rf"|(?<![\w+])(?:H|H3O|K|Li|Na|NH4|Ag|Cu|Cs)\+(?![\w+])|(?<!\w)(?:[A-Z][a-z]?[\u2080-\u2089]{{0,2}}){{1,8}}[{_RAISED}]{{0,2}}[\u207a\u207b]"
        rf"|{_OPTION}|{_SHORT_OPTION}|{_METHOD}"
        rf"|(?<!\w)(?:{_MODIFIER_KEYS})(?: ?\+ ?[A-Za-z0-9]{{1,10}}|\+[/\\,.;'\"=*\[\]](?=[\s)\]'\"<.,;:]|\Z)|-(?:{_MODIFIER_KEYS}|{_KEYS})(?!\w)){{1,4}}(?!\w)"
        rf"|%kbd [^%{_NO_CONTROL}]{{1,40}}%|{_KEYS_BY_SPACES}"  # %kbd Ctrl I %, Ctrl Q, Ctrl Shift T, Alt F4
        r"|(?<![\w.-])(?=\d[0-9a-f]{0,38}[a-f])[0-9a-f]{7,40}(?![\w-])"  # of a commit: 6b5f572c
        r"|(?<![\w.-])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![\w-])"  # a UUID
        r"|(?<![\w.])v?\d{1,4}(?:\.\d{1,4}){0,3}\.[xX](?:-[a-z]{1,9})?(?!\w)"  # 5.x, v2.3.x, 3.x-dev
        r"|(?<!\w)v\d{1,9}(?:\.\d{1,9}){1,3}(?:-[A-Za-z0-9]{1,30}(?:\.[A-Za-z0-9]{1,30}){0,5})?(?!\w)"  # v1.2.3-beta
        r"|(?<![\w.])\d{1,4}(?:\.\d{1,4}){1,3}-(?:alpha|beta|rc|dev|pre|preview|snapshot|SNAPSHOT|RC|[ab])(?:[.-]?\d{1,9}){0,3}(?![\w-])"  # 1.0-beta.2
        rf"|(?<![\w.])\d{{1,4}}\.(?!(?:{_FREQUENT_WORDS})(?![A-Za-z]))[a-z]{{3,20}}(?![\w.])"  # 3.times
        # Calls with arguments that are no words: print(x), f(x, y), an_object.call(1), np.array([1])
        rf"|(?<![\w.])(?:[A-Za-z_]\w{{0,48}}\.){{0,4}}[A-Za-z_]\w{{0,48}}\({_ARGUMENT}(?:, ?{_ARGUMENT}){{1,5}}\)"
        rf"|(?<![\w.])(?:(?:[A-Za-z_]\w{{0,48}}\.){{1,4}}[A-Za-z_]\w{{0,48}}|[a-z])\((?:{_ARGUMENT}|\[\w{{1,9}}\])\)|(?<![\w.])[a-z_]\w{{1,48}}\([xyz]\)"
        # Of a table, behind its equals sign: = LN(10), =SUM(A1:A5)
        r"|(?:(?<==)|(?<== ))[A-Z][A-Z0-9.]{1,20}\((?:[^()a-z\n\"]|\"[^()\n\"]{0,40}\"|\((?:[^()a-z\n]{0,99})\)){0,99}\)"
        r"|(?<![\w-])[A-Z]-[A-Z](?![\w-])|(?<![\w-])a-z(?![\w-])"  # A-Z
        # a/b, A/B, n/a, m/s; but w/o and b/c are words, and so are e/o, y/o and i/o of other languages: and/or.
        r"|(?<![\w/.])(?!(?:[aeiouy]/[aeiouy]|w/o|b/c)(?!\w))[A-Za-z](?:/[A-Za-z]){1,3}(?![\w/])"
        r"|(?<![\w^])\w\^\w(?![\w^])"  # x^2
        r"|[\u2318\u2325\u21e7\u2303]{1,3}[A-Z0-9](?!\w)"  # keys of Mac
        r"|<(?:%(?:\d{1,3}\$)?[s@]|\{\w{0,20}\})(?:[-+]\w{1,20}){1,4}\+?>"  # keys with a value: <%s-n>, <{0}+Shift+F5>
        r"|(?<![\w/])[ur]/[A-Za-z]\w{1,30}(?![\w/])"  # u/name of Reddit
        r"|(?<![\w&])[A-Z]{1,4}(?:&[A-Z]{1,4}){1,3}(?![\w&;])|(?<!\w)[A-Z] & [A-Z](?!\w)"  # R&D, AT&T, B & B
        # The endings of files and domains by themselves, and platforms that are named so: .pdf, .tar.gz, .NET, ASP.NET
        # .gitignore, .bashrc, .env
        r"|(?<![^\s(\[\"'\u00ab\u201c\u2018>/])\.(?:[a-z]{2,15}(?:rc|ignore)|editorconfig|env|git(?:attributes|hub|modules)?|htaccess|vscode)(?![\w-]|\.\w)"
        r"|(?<![\w@/.-])[a-z][\w.-]{0,60}@[~^]?\d{1,9}(?:\.[\dx]{1,9}){1,3}(?![\w-])"  # dog@~1.2.3
        # Of a file of any kind: a .dog file, .OBJ files, ".aff", (.ses), "house.ZZT"
        r"|(?<![^\s(\[\"'\u00ab\u201c\u2018>/])\.[A-Za-z][A-Za-z0-9]{1,7}(?= (?:files?|extensions?|formats?)(?![\w-]))"
        r"|(?<=[(\"\u201c])(?:\.[A-Za-z][A-Za-z0-9]{1,7}|[\w-]{1,60}\.[A-Z][A-Z0-9]{1,3})(?=[)\"\u201d])"
        rf"|(?<![^\s(\[\"'\u00ab\u201c\u2018>/])(?:{_ENDING})|(?<![\w.])[A-Z][A-Za-z]{{0,9}}\#?\.NET(?!\w)"
        # 34B, 123-23FZ, 3D, but 3D-printed has a word behind it
        rf"|(?<![\w$\u00a3\u00a5\u20a0-\u20cf])(?<!\d[.,:])\d{{1,9}}(?:[-/.,:]\d{{1,9}}){{0,9}}(?!(?:{_UNITS_IN_CAPITALS})(?!\w))[A-Z]{{1,2}}(?![\w\u20a0-\u20cf-])"
        # A4, XY-123/45, mp3
        r"|(?<!\w)[A-Za-z]{1,20}-?\d[A-Za-z0-9]*(?:[-/][A-Za-z0-9]+)*",
    ),
    "number": NamedKind(
        SpanKind.NUMBER,
        (
            rf"(?:(?:(?<!\w)(?:{_CURRENCIES})|[$£¥\u20a0-\u20cf])[ {_SPACE}]?)?(?:(?<![\w)])[+\u2212-])?"
            # 5\u201310, 3~4, 20 x 30, 3x, 1.5+
            rf"\d+(?:(?:[.,:/'\u2019{_SPACE}\u2013~-]|[ {_SPACE}]?[x\u00d7][ {_SPACE}]?(?=\d+(?!\w)|\d+x\d))\d+)*(?:[x\u00d7](?![\w=])|\+(?=[\s,;.:!?)]|\Z))?"
            rf"(?:[ {_SPACE}]?(?:°[CF]|%%|[%‰$£¥°\u20a0-\u20cf]|(?:{_CURRENCIES}))(?![\w({{]))?"
        ),
    ),
    # Of those that its pattern finds, the ones that name something: `languages.names_something`.
    "letter": NamedKind(SpanKind.LETTER, NAME_OF_LETTERS),
    # Commands and options, calls, settings: words for programs that a text of people seldom has.
    "command": NamedKind(
        SpanKind.WORD,
        (
            # Directly behind a full word, and without a vowel: -xzf, -czstd; what people say has none of these: -hmm.
            r"(?<=[\w,(] )-(?!(?:hmm?|mhm|mm|shh?|psst|pst|tsk|brr|pfft|nth|vs|km|kg|cm|ft|lbs?|mr|mrs|dr|st)(?!\w))[b-df-hj-np-tv-xz]{2,6}(?![\w'\u2019-])"
            rf"|(?<![\w/.@-])(?:{_PROGRAMS})(?: --?[A-Za-z][\w-]{{0,40}}(?:={_VALUE_OF_SETTING})?){{1,9}}(?![\w-])"
            # A call whose arguments are names: foo(bar, baz)
            rf"|(?<![\w.$@-])(?:{_NAME_OF_CALL}\.){{0,4}}[a-z_]\w{{1,48}}\((?P<arguments>{_NAME_OF_CALL}(?:, ?{_NAME_OF_CALL}){{1,9}})\)(?!\w)"
            # Also with other arguments, if its name has parts: babel.parse(code: string), .slice(0, n), and Cat#meow as in lists of functions
            rf"|(?<![\w.$@/-]){_NAME_OF_CALL}(?:\.{_NAME_OF_CALL}){{1,4}}\([^()\n]{{1,200}}\)(?!\w)|(?<![\w.)/])\.[a-z]\w{{1,48}}\([^()\n]{{0,200}}\)(?!\w)"
            r"|(?<![\w.$@/#-])[A-Z][a-z]\w{0,48}#[a-z_]\w{1,48}(?:\([^()\n]{0,200}\))?(?![\w#])"
            # A file below a placeholder: {{ folder }}/icon.png; names with their space, such as og:title, db:seed
            r"|(?:\{\{[^{}\n]{1,99}\}\}|[$%]?\{[\w. ]{1,60}\}|\$[A-Za-z_]\w{0,40})(?:/[\w.-]{1,60}){0,9}/[\w.-]{0,60}\w\.[A-Za-z]\w{1,4}(?!\w)"
            r"|(?<![\w@#.\\/:<-])(?:og|db|dc|dcterms|fb|rdfs?|foaf|owl|skos|xsd|xsi|xlink|minecraft|android|tools|epub):[a-z][\w/-]{1,48}(?![\w:])"
            # areas="left+right", place_type=continent, has[]=photos&has[]=geo, readOnly=auto
            rf"|(?<![\w<&?./-])[A-Za-z][\w:-]{{1,40}}=(?:\"[^\"\s<>]{{1,99}}\"|'[^'\s<>]{{1,99}}')(?!\w)"
            rf"|(?<![\w<&?./-]){_NAME_OF_SETTING}[+:]?={_VALUE_OF_SETTING}(?:&{_NAME_OF_SETTING}={_VALUE_OF_SETTING}){{0,9}}(?![\w=])"
            # HTTP_HOST:example.test; a query by itself; a path with a variable in it, or with one file: /projects/:id/tasks, /index.json
            rf"|(?<![\w<&?./-])[A-Z][A-Z0-9]{{0,30}}(?:_[A-Z0-9]{{1,30}}){{1,9}}:{_VALUE_OF_SETTING}(?!\w)"
            r"|(?<![^\s(\[\"'\u201c/])\?[a-z]\w{0,40}=[\w.%+-]{1,99}(?<!\.)(?:&[a-z]\w{0,40}=[\w.%+-]{1,99}(?<!\.)){0,20}"
            r"|(?<![\w/.:{}])(?:/[\w.-]{1,60}){0,9}/(?::[a-z]\w{0,40}|\{\w{1,40}\})(?:/[\w.-]{0,60}\w|/:[a-z]\w{0,40}|/\{\w{1,40}\}){1,9}(?!\w)"
            r"|(?<![\w/.<>)\]])/[a-z][\w-]{0,60}\.(?:[a-z]{2,3}|html|json|jsonl|webp|yaml)(?![\w/])"
            # The number of a rule: au-1_smt.a; a command behind the code of a colour: &c/help
            r"|(?<=[&\u00a7][0-9a-fk-or])/[a-z]\w{1,40}"
            r"|(?<![\w@/.-])[A-Za-z]{1,20}-\d[\w.-]{0,40}_[\w.-]{0,40}\w"
            # .ruby-version, data-allowReplies
            r"|(?<![^\s(\[\"'\u00ab\u201c\u2018>/])\.[a-z][a-z0-9]{1,20}(?:-[a-z0-9]{1,20}){1,3}(?![\w-]|\.\w)"
            r"|(?<![\w@#.\\/<-])data-[a-z]{1,30}(?:[A-Z][a-z0-9]{1,30}){1,4}(?![\w-])"
        ),
        is_code=True,
    ),
    "smiley": NamedKind(
        SpanKind.TAG,
        (
            r"(?<!\S)(?:[:;=]['\u2019]?-[()DPpOo/\\|*]|[:;]['\u2019]?[)(DPp]|:/|<3|\^\^|[xX]D)(?=\s|\Z|[.,!?\u2026)](?:\s|\Z))"
        ),
        is_code=True,
    ),
    # Of Minecraft and chats: \u00a7a is green, \u00a7r ends it; on servers also &a.
    "colour": NamedKind(
        SpanKind.TAG,
        (r"(?:\u00a7[0-9a-fk-orA-FK-OR]|\u00a7x(?:\u00a7[0-9a-fA-F]){6})+|(?:&(?:\#[0-9a-fA-F]{6}|[0-9a-fk-or]))+"),
        is_code=True,
    ),
}
SPAN_SIGN = lazy_pattern(
    rf"\w=\w|[\d{_RAISED}\u207a\u207b<`&{{%$#@/\\\[:_+*~\ufe0f\u20e3{_PICTURE}]|\.\w|\(\)|![a-z]|--[a-z]|(?<![^\s(\[\"'])-[A-Za-z\d]|[a-z][A-Z]|[A-Z]-[A-Z]|[ACGTU]{{6}}|a-z|[Yy]{{2}}|dd-|(?:ng|hx|v|x|data|aria)-[a-z]|[A-Za-z]\.[A-Z]|(?:{_MODIFIER_KEYS})-|\^|(?:[A-Z]T|PUT|PATCH|DELETE)(?:s| [a-z])|\w\([A-Za-z'\"]|[\u2318\u2325\u21e7\u2303]"
)
"""One of these is in each text that has a span, other than a letter by itself; most sentences have none."""
SIGN_OF_CODE = lazy_pattern(
    r"[ (]-[A-Za-z]|[=:;]['\u2019-]?[)(DPpOo/\\|*\"']|\w[+:]?=\w|\]=|<3|\^\^|[xX]D|\{\{|\u00a7|&[#0-9a-fk-or]|\.[a-z][a-z0-9]+-|data-[a-z]+[A-Z]|/\w|/[:{]|_\w|\?[a-z]|[a-z]:[a-z]|[A-Za-z]#[a-z_]|[\w.]\w\("
)
"""One of these is in each text that has code."""
