"""Lines that programs read and nobody says: those of program code, and of the head of a mail or of HTTP.

A sentence of prose must never count as one, so each form needs signs that no sentence has, and a line with words of a sentence has none.
"""

import re
from typing import NamedTuple

from transformer_cli.text.lazy_patterns import lazy_pattern


class PartForPrograms(NamedTuple):
    """The part line[start:end] of a line, which stays as it is."""

    start: int
    end: int


def part_for_programs(line: str) -> PartForPrograms | None:
    """What a program reads of a line: the whole line without the white space around it, or the name in "Subject: The red house"; None for a text."""
    if _MAY_BE_FOR_PROGRAMS.search(line) is None:
        return None
    start, end = len(line) - len(line.lstrip()), len(line.rstrip())
    text = line[start:end]
    if (subject := _SUBJECT.match(text)) is not None:
        return PartForPrograms(start, start + subject.end(1))
    if _SURE_HEAD.match(text) or _SETTINGS.fullmatch(text):
        return PartForPrograms(start, end)
    return PartForPrograms(start, end) if len(text) <= _LONGEST and (_is_of_head(text) or _is_code(text)) else None


# Most texts have none of these.
_MAY_BE_FOR_PROGRAMS = lazy_pattern(r"[;{}=()\[<>$#@\"]|: |:\s*\Z|HTTP/\d|[A-Z]{2} |import | --?[a-z]| [~/.]|&&")
_LONGEST = 400

# Heads of mails and of HTTP.

_SUBJECT = lazy_pattern(r"(Subject(?:: (?:R[eE]|F[wW]d?|AW|WG))*): (?=\S[^{}%$]*\Z)")
# Nobody says the beginning of such a line, whatever follows.
_SURE_HEAD = lazy_pattern(
    r"(?:Message-I[Dd]|In-Reply-To|References|Return-Path|Content-ID|List-(?:Id|Post|Help|Archive|Owner|(?:Un)?[Ss]ubscribe)): ?<"
    r"|MIME-Version: ?\d|DKIM-Signature: ?[a-z]=|Received: ?(?:from|by) (?=\S*[.\[])|(?:Authentication-Results|Received-SPF): ?\S+[.; ]"
    r"|X(?:-[A-Z][A-Za-z]{1,30}){1,6}: ?(?=\S*(?:=|\s*\Z|\d))"
    r"|HTTP/\d(?:\.\d)? \d{3}(?: |\Z)|(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE) \S{1,500} HTTP/\d"
)
# Names of a head; a text may begin with them, too, as in "Content-Type: the kind of a file".
_NAME_OF_HEAD = lazy_pattern(
    r"(?:Content-(?:Type|Length|Disposition|Transfer-Encoding|Encoding|Language|Location|Range|Security-Policy)|MIME-Version|User-Agent|Set-Cookie"
    r"|Cache-Control|Accept-(?:Language|Encoding|Charset|Ranges)|Last-Modified|If-(?:None-Match|Match|Range|(?:Un)?[Mm]odified-Since)|Transfer-Encoding"
    r"|Access-Control-[A-Z][\w-]{1,40}|Strict-Transport-Security|Referrer-Policy|Permissions-Policy|Keep-Alive|Proxy-[A-Z][\w-]{1,30}|WWW-Authenticate"
    r"|Sec-[A-Z][\w-]{1,40}|Upgrade-Insecure-Requests|Retry-After|Auto-Submitted|Delivered-To|List-Unsubscribe-Post|Thread-Index|X(?:-[A-Z][A-Za-z]{1,30}){1,6}"
    r"|Accept|Authorization|Connection|Cookie|E[Tt]ag|Host|Pragma|Vary): ?(?=\S)",
)
_WORD_OF_HEAD = r"[\w./:*+@=\"'<>()\[\]-]{1,300}"
_VALUE_OF_HEAD = lazy_pattern(rf"{_WORD_OF_HEAD}[,;]?(?: {_WORD_OF_HEAD}[,;]?){{0,40}}")
# Of names that are words of every day, too, only such values are of a head: addresses, dates, kinds of media, names of hosts.
_ADDRESS = r"(?:\"[^\"]{1,100}\" |[\w.' -]{1,100} )?<?[\w.+-]{1,64}@[\w.-]{1,253}>?"
_DATE = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{1,2}:\d{2}.*"
_TYPED_HEAD = lazy_pattern(
    rf"(?:(?:Resent-)?(?:From|To|Cc|CC|Bcc|BCC|Sender|Reply-To)|Errors-To|Delivered-To): ?{_ADDRESS}(?:, ?{_ADDRESS}){{0,50}},?"
    rf"|(?:Date|Sent|Expires|Resent-Date|Last-Modified): ?{_DATE}"
    r"|Server: ?[\w-]+/[\d.]+.*|(?:Location|Referer|Origin): ?(?:https?:/)?/\S*|Allow: ?[A-Z]{3,7}(?:, [A-Z]{3,7})*|Age: ?\d+"
)
# A line of settings alone: policy=default dog=red house=big
_SETTINGS = lazy_pattern(r"(?:[A-Za-z][\w.-]{0,40}=[^\s\"'=]{1,99}(?: |\Z)){3,60}")


def _is_of_head(text: str) -> bool:
    if _TYPED_HEAD.fullmatch(text):
        return True
    name = _NAME_OF_HEAD.match(text)
    if name is None or _WORD_OF_SENTENCE.search(text, name.end()):
        return False
    value = text[name.end() :]
    is_single = " " not in value
    return is_single or (_VALUE_OF_HEAD.fullmatch(value) is not None and re.search(r"[=;/]|\d|, ", value) is not None)


# Program code.


_WORD_OF_SENTENCE = lazy_pattern(
    r"(?<![\w.$\"'-])(?:the|of|that|you|we|they|he|she|was|were|are|have|has|my|your|his|her|their|please|will|would|can|could|should|an|these|those|is|to|and)"
    r"(?=[ ,!?]|\.(?!\w)|\Z)(?! ?[=(<:]| [$@%]| (?:not )?None\b)",
    re.IGNORECASE,
)
_KEYWORDS = (
    "abstract|as|async|await|bool|boolean|break|byte|case|catch|char|class|const|continue|crate|def|default|defer|delegate|delete|do|double|elif|else|end|"
    "enum|event|except|explicit|export|extends|extern|final|finally|float|fn|for|foreach|friend|func|function|get|go|goto|if|impl|implements|implicit|"
    "import|in|inline|int|interface|internal|is|lambda|let|local|long|match|mod|module|mut|mutable|my|namespace|native|new|nil|nonlocal|not|null|object|"
    "operator|or|and|out|override|package|params|partial|private|protected|pub|public|raise|readonly|record|ref|register|require|return|sealed|self|set|"
    "short|signed|sizeof|static|string|struct|super|switch|synchronized|template|this|throw|throws|trait|transient|try|type|typedef|typename|uint|ulong|"
    "union|unless|unsafe|unsigned|until|use|using|val|var|virtual|void|volatile|when|where|while|with|yield"
)
_KEYWORD = lazy_pattern(rf"(?<![\w.$])(?:{_KEYWORDS})(?!\w)")
_STRING = lazy_pattern(r"(?<![\w\"'])[rbfu@$]{0,2}\"(?:[^\"\\]|\\.)*\"|(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|`[^`]*`")
_COMMENT = lazy_pattern(r"\s+(?://|#|--)\s.*\Z|\s*/\*.*?\*/")
_THREE_WORDS = lazy_pattern(r"(?<![\w.$-])[A-Za-z]?[a-z]+,? [a-z]+,? [a-z]+(?![\w.(\[<=:-])")
_TWO_WORDS = lazy_pattern(r"(?<![\w.$-])[a-z]{2,},? [a-z]{2,}(?![\w(\[<=:-])|\w \((?=[a-z])")

_NAME = r"[A-Za-z_$][\w$]*"
_DOTTED = rf"(?:\*+|&)?@?{_NAME}(?:(?:\[[\w.'\"]*\]|\{{[\w$'\"]*\}})*(?:\.|::|->|\?\.|!\.)#?{_NAME}|->[\[{{][\w$'\"]*[\]}}])*!?"
_TYPE = rf"{_DOTTED}(?:<[^;=()]*>)?(?:\[[^\[\];]*\])*[*&?]*"
_PRIMITIVE = r"(?:bool|boolean|byte|char|double|float|int|long|short|string|String|uint|ulong|void|unsigned|size_t|object|Object)"
_ASSIGNED = rf"(?:{_TYPE}|\(?{_DOTTED}(?:, ?{_DOTTED})*\)?|\[{_DOTTED}(?:, ?{_DOTTED})*\]|\{{ ?{_DOTTED}(?:, ?{_DOTTED})* ?\}}|{_DOTTED}\[.*?\](?:\.\w+)*)"
_MODIFIER = (
    r"(?:abstract|async|const|export|extern|final|inline|internal|let|local|mut|my|new|our|override|partial|private|protected|pub(?:\([a-z]+\))?|public"
    r"|readonly|sealed|static|synchronized|unsafe|val|var|virtual|volatile|default)"
)
_PROGRAM = (
    "apk|apt|apt-get|aptitude|awk|brew|bundle|cargo|cat|cd|chmod|chown|cmake|composer|conda|cp|curl|dnf|docker|docker-compose|dotnet|echo|export|find|gcc|gem|git"
    "|go|gradle|grep|helm|java|javac|kubectl|ln|ls|make|mkdir|mv|mvn|node|npm|npx|pacman|php|pip|pip3|pnpm|poetry|powershell|ps|pytest|python|python3|rails|rake"
    "|rm|rsync|ruby|rustup|scp|sed|service|sh|source|ssh|sudo|systemctl|tar|terraform|touch|unzip|uv|vi|vim|wget|yarn|yum|zip"
)
_ENDS_STATEMENT = "|".join(
    (
        r"(?:global )?(?:using|import|package|namespace|use|pub use|include|require|mod|extern crate|export \*)(?: static)? [\w.:*{}, =$\"'<>\\]+;",
        rf"(?>(?:{_MODIFIER} )*)(?:{_TYPE} ){{0,2}}{_ASSIGNED}(?:: ?{_TYPE})?\s*(?:[-+*/|&%^]|<<|>>|\?\?)?=(?!=).*;",
        rf"(?:(?:await|return|throw|throw new|raise|yield|yield return|new|delete|defer|go|echo|print|co_await|return await|return new|await foreach) )?\(?{_DOTTED}(?:<[^;=()]*>)?!?\(.*;",
        r"(?:return|throw|yield|yield return)(?: [!&*~-]?[\w$.\[\]]*(?:[_\d()\[\]{}<>=+*/!&|?\"]|[a-z][A-Z])[^;]*| (?:this|null|true|false|nil|self|None|\w))?;",
        r"(?:break|continue);",
        rf"(?>(?:{_MODIFIER} )+){_TYPE} {_NAME}(?:, ?{_NAME})*;(?<=[\w\]>)];)",
        rf"(?>(?:{_MODIFIER} )*){_PRIMITIVE}[*&?\[\]]*(?: {_PRIMITIVE})? [*&]*{_NAME}(?:\[.*\])?(?:, ?[*&]*{_NAME}(?:\[.*\])?)*;",
        rf"(?>(?:{_MODIFIER} )*)(?:{_TYPE} ){{1,2}}[*&]*~?{_DOTTED}\(.*\)(?: (?:const|override|noexcept|throws [\w., ]+))*(?: = 0| => .*)?;",
        rf"{_DOTTED}(?:\[.*\])?(?:\+\+|--);",
        r"\.\w+(?:<[^;=()]*>)?\(.*;",
        r"\}\)?(?: (?:while|from) ?.*)?;",
        r"type \w+(?:<.*>)? ?= ?.*;",
        r"(?:typedef|struct|enum|union|class) .*[\w)\]}*];",
    )
)
_BLOCK = (
    "public|private|protected|internal|static|abstract|sealed|final|class|struct|enum|interface|trait|impl|namespace|module|mod|fn|func|function|def|if|for|foreach|"
    "while|switch|try|catch|finally|else|do|match|unsafe|extern|typedef|union|async|export|pub|const|let|var|type|package|record|union|loop|when|select|sub|get|set|using|lock|return|case|default"
)
_OPENS_BLOCK = "|".join(
    (
        rf"(?:\}}\)? ?)?(?:{_BLOCK})\b(?:[^;]|;(?=.*\)))*\{{",
        r"\}? ?(?:else|try|do|finally|loop|unsafe|get|set|init)(?:,)? ?\{",
        rf"(?:{_TYPE} ){{0,3}}[*&]*~?{_DOTTED}(?:<[^;=()]*>)?\(.*\)[^;.!?]*\{{",
        r".*(?:=>|->|[=:(,])\s*\{",
        r"[.#@][\w-]+(?>(?:[ ,>+~.:#]++[\w()-]++){0,9}) ?\{",
        r"(?:html|body|div|span|table|input|button|ul|ol|li|img|h[1-6]|nav|section|:root)(?>(?:[ ,>+~.:#]++[\w()-]++){0,9}) ?\{",
        rf"{_TYPE}(?:, ?{_TYPE})* ?\{{",
    )
)
_VALUE_OF_CODE = r"[(\[{\"'`_]|[A-Za-z_]\.[A-Za-z_]|(?<![\w])(?:true|false|null|nil|None|True|False)(?!\w)"
_WITHOUT_END = "|".join(
    (
        # Python
        r"(?:async )?def \w+\(.*\)(?: ?-> ?.+)?:(?: \.\.\.)?",
        r"class [A-Z]\w*\(.*\):|class [A-Z][a-z]+(?:[A-Z]\w*)+:",
        r"(?:if|elif|while) (?:not )?.*(?:[=!<>]=|[\w)\]] [<>] [\w(]|[a-z_\d]\(|\w\[|\w_\w|\w\.\w| is (?:not )?None| not in | isinstance).*:",
        r"(?:async )?for [\w, *()]+ in .*(?:\w\(|\w\[|\w_\w|\w\.\w|\[).*:",
        r"(?:async )?with [\w.]+\(.*:",
        r"except(?: \(?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Iteration|Warning)(?:, [A-Z]\w*)*\)?(?: as \w+)?)?:|else:|elif .*:",
        r"from (?:\.+[\w.]*|\w+(?:\.\w+)+|\w*_\w+) import [\w*, ()]+(?: as \w+)?,?|import (?:\w+(?:\.\w+)+|\w*_\w+)(?: as \w+)?",
        r"(?:raise|return|yield|assert|del) .*(?:[a-z_\d]\(|\w\[|\w_\w|[=!<>]=|\{).*",
        r"(?:await |return |yield |raise |throw )?(?:self|this|super\(\))\.\w+.*[=(].*",
        # JavaScript, Go, Rust, Ruby, PHP, Perl
        rf"import .* from [\"'`]{{2}}|(?:const|let|var|val|export const) {_ASSIGNED}(?:: ?{_TYPE})?\s*:?=.*|export (?:default |async )*(?:function|class|const|interface|type)\b.*",
        rf"{_DOTTED}(?:, ?{_DOTTED})* := .*|func (?:\(\w+ \*?[\w.]+\) )?\w+\(.*|(?:pub(?:\(\w+\))? )?(?:async )?fn \w+.*\(.*",
        r"(?:use|require|require_relative|include|import) [\"'`]{2}",
        r"[$@]\w+(?:(?:->|\.)\w+|\[.*?\])*\s*[.+-]?=.*",
        # C
        r"#\s*(?:include\s*(?:[<\"].*|)|define [A-Z_]\w*(?:\(.*\))?(?: .*)?|ifn?def \w+|if (?:!?defined|\d|[A-Z_]{3,}).*|elif .*|else|endif|pragma .*|undef \w+)",
        # Decorators and attributes
        r"@[A-Za-z][\w.]*\(.*\)|\[[A-Za-z][\w.]*\((?:.*[\"'=].*|)\)\]|#!?\[[a-z_]+(?:\(.*\)|::.*)?\]",
        # Chains, and calls of a name with signs of code
        r"\.\w+(?:<[^;=()]*>)?\(.*[,({)]|\?\.\w+.*|\.\w+\(\)\??",
        r"\} (?:else|elsif|elseif|catch|finally|while|from|as)\b.*|\}\)?\.\w+\(.*",
        r"(?:case|default) .*(?:\"\"|''|\w\.\w|[A-Z_]{3,}|\d).*(?::|=>.*)",
        r"(?:return|throw) new \w+\(.*|.*\S &&",
        r"(?:\}? ?else )?(?:if|while|for|foreach|switch) ?\(.*(?:[=!<>]=|[<>&|]|\w\(|_|\[|!\w| is [A-Z]).*\)",
        rf"(?:(?:public|private|protected|internal|static|override|virtual|abstract|async|final|extern) )+(?:{_TYPE} ){{1,2}}{_NAME}(?:<[^;=()]*>)?\((?!e?s\)).*",
        r"[a-z_][a-z0-9_]*=\$\S+",
        # SQL
        r"(?:SELECT .{1,300} FROM \S.*|INSERT INTO \S+ ?\(.*|(?:CREATE|ALTER|DROP) (?:TEMPORARY |UNIQUE )?(?:TABLE|INDEX|VIEW|DATABASE) .*|UPDATE \S+ SET .*=.*|DELETE FROM \S+.*)",
        # A shell
        r"#!/.*|(?:if|while|until|elif) \[\[? .* \]\]?(?: ?; ?(?:then|do))?|for \w+ in .*; ?do|.* \]\]? (?:&&|\|\|) .*",
        r"export [A-Z_][A-Z0-9_]*=.*|[A-Z_][A-Z0-9_]*=(?:\$.*|\"\".*|''|[/\w.:-]*)",
    )
)
_STATEMENT = lazy_pattern(_ENDS_STATEMENT)
_BLOCK_LINE = lazy_pattern(_OPENS_BLOCK)
_OTHER_LINE = lazy_pattern(_WITHOUT_END)
_ASSIGNMENT = lazy_pattern(
    rf"{_ASSIGNED}(?:: ?{_TYPE})?\s*(?:[-+*/|&%]|//|\*\*|\|\||\?\?)?=(?![=>])\s*(?P<value>\S.*?),?"
)
_CALL = lazy_pattern(
    rf"(?:(?:await|return|yield|raise|throw|new|assert|print|not) )?(?P<name>{_DOTTED}(?:<[^;=()]*>)?)\((?P<arguments>.*?)(?:\)(?:[.\[(?].*)?[,:]?|[,(])"
)
_SURE_ARGUMENTS = lazy_pattern(
    r"\A\Z|[\"'`=_<>+*/{}\[\]]|\w\.\w|\w\(|(?<!\w)(?:null|None|true|false|True|False|self|this)(?!\w)"
)
_ENTRY = lazy_pattern(
    r"[a-z_$][\w$-]*\??\s*:\s*(?:\"\"|''|``|[\d.]+|true|false|null|undefined|\w+\(.*\)|\[.*|[a-z]\w*(?:\.\w+)+)\s*,|\"\"\s*:\s*(?:[\d.]+|true|false|null|\[.*|\{.*)\s*,?"
)
_PROMPT = lazy_pattern(r"(?:\$|[\w.-]+@[\w.-]+:\S*[$#]) (?=[a-z./~])(?P<command>.*)")
_COMMAND = lazy_pattern(
    rf"(?:sudo )?(?:{_PROGRAM})(?: (?:install|add|run|build|clone|commit|push|pull|init|start|update|upgrade|checkout|create|test|exec|get|apply|restart|enable|status|remove|publish|sync|restore|new))?"
    r"(?P<rest>(?: \S+){1,30})"
)
_SIGN_OF_COMMAND = lazy_pattern(r" --?[A-Za-z]|[/\\~=|>$*@]|\w\.\w|&&|\w_\w|\"\"|''")


def _is_code(text: str) -> bool:
    if text.startswith(("//", "/*", "*", "<!--", "-- ")) or (
        text.startswith("# ") and not text.startswith("# include")
    ):
        return False
    has_string = _STRING.search(text) is not None
    visible = _COMMENT.sub("", _STRING.sub(lambda match: match[0][-1] * 2, text)).rstrip()
    if not visible or _WORD_OF_SENTENCE.search(visible):
        return _is_command(text, visible)
    bare = _KEYWORD.sub("", visible)
    if _THREE_WORDS.search(bare):
        return _is_command(text, visible)
    if visible.endswith(";"):
        return (
            _STATEMENT.fullmatch(visible) is not None or _OTHER_LINE.fullmatch(visible, 0, len(visible) - 1) is not None
        )
    if visible.endswith("{") and _BLOCK_LINE.fullmatch(visible):
        return True
    if _OTHER_LINE.fullmatch(visible) or (
        _ENTRY.fullmatch(visible) and not re.search(r"\s", "".join(_STRING.findall(text)))
    ):
        return True
    return _is_command(text, visible) or (
        not _TWO_WORDS.search(bare) and _is_expression(visible, has_string=has_string)
    )


def _is_expression(visible: str, *, has_string: bool) -> bool:
    """Whether a line is an assignment or a call without a mark at its end."""
    assigned = _ASSIGNMENT.fullmatch(visible)
    if assigned is not None:
        # A second setting behind a space is one of a log, whose texts are for people: level=info msg="The dog is red"
        value = assigned["value"]
        return re.search(_VALUE_OF_CODE, value) is not None and re.search(r"(?<![(,]) [\w.]+=(?!=)", value) is None
    call = _CALL.fullmatch(visible)
    if call is None:
        return False
    is_name_of_code = re.search(r"[._$:>]|[a-z][A-Z]", call["name"]) is not None
    return is_name_of_code or has_string or _SURE_ARGUMENTS.search(call["arguments"]) is not None


def _is_command(text: str, visible: str) -> bool:
    """Whether a line is a command of a shell: behind a prompt, or with options and paths behind the name of a program."""
    prompt = _PROMPT.fullmatch(visible)
    command = prompt["command"] if prompt else visible
    if _WORD_OF_SENTENCE.search(command) or text[-1] in ".!?:,":
        return False
    if prompt is not None:
        return _THREE_WORDS.search(command) is None or _COMMAND.fullmatch(command) is not None
    found = _COMMAND.fullmatch(command)
    if found is None or _THREE_WORDS.search(found["rest"]):
        return False
    return command.startswith("sudo ") or _SIGN_OF_COMMAND.search(found["rest"]) is not None
