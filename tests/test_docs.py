"""The documents: names exist in the code, and generated pages are current."""

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import torch

import transformer_cli
from transformer_cli.config import FileCorpus, HubCorpus, RescoringModel, load_config
from transformer_cli.config.loading import check_settings, parse_yaml
from transformer_cli.config.refusal import setting_paths
from transformer_cli.model import Transformer

pytestmark = pytest.mark.pages

PACKAGE = Path(transformer_cli.__file__).parent
ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
REFERENCES = [
    "tutorial-prenorm",
    "annotated-resnorm",
    "notebook-postnorm",
    "scaled-postnorm",
    "rms-silu",
]

FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
QUOTED = re.compile(r"# \S+\.py: ")  # a part of a module, which tests/test_docs_generated.py compares
MODULE = re.compile(r"(?<![\w/.])([\w./-]+\.py)(?:: ([A-Za-z_][\w.]*))?")
MEMBER = re.compile(r"([A-Z]\w+)\.(\w+)(?:\(.*\))?")  # such as Transformer.encode
SECTIONS = "data|tokenizer|model|training|validation|decoding|runtime|published"
SETTING = re.compile(rf"(?:--set )?((?:{SECTIONS})(?:\.\w+)+)(?:\.\*)?(?:$|: |=)")
FILE_ENDINGS = (
    ".py",
    ".json",
    ".safetensors",
    ".arrow",
    ".lock",
    ".npz",
    ".spm",
    ".yml",
    ".bin",
    ".sig",
)


def place(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def prose(document: Path) -> str:
    """The text of a document that readers see, without its code blocks."""
    return COMMENT.sub("", FENCED.sub("", document.read_text(encoding="utf-8")))


def file_of(name: str, document: Path) -> Path | None:
    """The file that a name in a document refers to: beside it, in the package, or in the repository."""
    for folder in (PACKAGE, ROOT, document.parent):
        if (folder / name).is_file():
            return folder / name
    bare = [] if "/" in name else sorted(PACKAGE.rglob(name))
    return bare[0] if bare else None


@cache
def names_in(file: Path) -> frozenset[str]:
    """Functions, classes and variables of a module, and the members of its classes."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = set(defined_in(tree))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{name}" for name in defined_in(node)}
    return frozenset(names)


def defined_in(scope: ast.Module | ast.ClassDef) -> list[str]:
    names = []
    for node in scope.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names += [target.id for target in targets if isinstance(target, ast.Name)]
    return names


@cache
def known_settings() -> frozenset[str]:
    sources = ("phrasebook", "sequences", "files", "hub")
    known = {path for source in sources for path in setting_paths({"source": source})}
    for corpus in (FileCorpus, HubCorpus):
        known |= {f"data.corpora.N.{name}" for name in corpus.model_fields}
    known |= {f"decoding.rescore.models.N.{name}" for name in RescoringModel.model_fields}
    return frozenset(known)


@cache
def generator(name: str) -> ModuleType:
    """A script of docs/ that prints a page."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def spans() -> Iterator[tuple[Path, str]]:
    """Each document with each of its texts between backquotes."""
    for document in DOCUMENTS:
        yield from ((document, span) for span in SPAN.findall(prose(document)))


def test_every_module_and_name_that_is_mentioned_exists() -> None:
    missing = []
    for document, span in spans():
        for path, name in MODULE.findall(span):
            file = file_of(path, document)
            if file is None or (name and name not in names_in(file)):
                missing.append(f"{place(document)}: {span}")
    assert missing == []


@cache
def classes() -> dict[str, tuple[frozenset[str], tuple[str, ...]]]:
    """Name of each class of the package -> its members, and the names of its bases."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                stored = (
                    each.attr
                    for each in ast.walk(node)
                    if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
                )
                bases = tuple(ast.unparse(base).rpartition(".")[2] for base in node.bases)
                found[node.name] = (frozenset({*defined_in(node), *stored}), bases)
    return found


def has_member(kind: str, name: str) -> bool:
    """Whether a class has a member; what a class of another package has is not known, and counts."""
    if kind not in classes():
        return True
    members, bases = classes()[kind]
    strangers = {"object", "Protocol", "NamedTuple", "Section"}
    return name in members or any(has_member(base, name) for base in bases if base not in strangers)


def test_every_member_of_a_class_that_is_mentioned_without_a_file_exists() -> None:
    missing = [
        f"{place(document)}: {span}"
        for document, span in spans()
        if (member := MEMBER.fullmatch(span)) and not has_member(*member.groups())
    ]
    assert missing == []


def test_every_setting_that_is_mentioned_exists() -> None:
    unknown = []
    for document, span in spans():
        mentioned = SETTING.match(span)
        if mentioned and not mentioned[1].endswith(FILE_ENDINGS):
            setting = re.sub(r"(?<=corpora)\.\d+", ".N", mentioned[1])
            if setting not in known_settings():
                unknown.append(f"{place(document)}: {span}")
    assert unknown == []


def test_every_complete_config_is_valid() -> None:
    for document in DOCUMENTS:
        for indent, language, text in FENCED.findall(document.read_text(encoding="utf-8")):
            if language == "yaml" and text.lstrip().startswith("name:"):
                plain = re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)
                check_settings(parse_yaml(plain, place(document)), place(document))


def test_the_model_that_is_as_in_joeynmt_has_as_many_parameters_as_the_page_says() -> None:
    page = (ROOT / "docs" / "from_other_programs.md").read_text(encoding="utf-8")
    [text] = [text for *_, text in FENCED.findall(page) if text.startswith("name: as-in-joeynmt")]
    config = check_settings(parse_yaml(text, "page"), "page")
    with torch.device("meta"):
        model = Transformer(config.model, 4000, 4000)
    assert f"Both have {sum(one.numel() for one in model.parameters()):,} parameters" in page
    assert config.model.has_final_norm


@pytest.mark.parametrize("page", ["configuration", "what_breaks"])
def test_a_generated_page_is_what_its_generator_prints(page: str) -> None:
    current = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    command = f"python docs/make_{page}.py > docs/{page}.md"
    assert current == "\n".join(generator(f"make_{page}").lines()), f"run {command}"


def imports_of_examples() -> Iterator[tuple[Path, ast.ImportFrom]]:
    """Each document with each import of the package in its examples."""
    for document in DOCUMENTS:
        for _, language, text in FENCED.findall(document.read_text(encoding="utf-8")):
            if language != "python" or QUOTED.match(text):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom):
                    yield document, node


def test_every_name_that_an_example_imports_exists() -> None:
    missing = []
    for document, node in imports_of_examples():
        if str(node.module).startswith("transformer_cli"):
            module = importlib.import_module(str(node.module))
            if not all(hasattr(module, alias.name) for alias in node.names):
                missing.append(f"{place(document)}: {ast.unparse(node)}")
    assert missing == []


def unclosed_blocks(text: str) -> Iterator[str]:
    """The headings of sections that a code block before them takes in, because it has no end."""
    is_open = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_open = not is_open
        elif is_open and line.startswith("## "):
            yield line
    if is_open:
        yield "the end of the page"


def test_every_code_block_ends_before_the_next_section() -> None:
    assert list(unclosed_blocks("```bash\ntfm\n\n## A\n")) == ["## A", "the end of the page"]
    found = {place(page): list(unclosed_blocks(page.read_text("utf-8"))) for page in DOCUMENTS}
    assert not {page: headings for page, headings in found.items() if headings}


def test_the_page_of_settings_has_every_setting() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    whole_sections = {"data", *SECTIONS.split("|")}
    for setting in known_settings() - whole_sections:
        assert f"| `{setting}` |" in page, setting


def test_the_table_of_reference_models_says_what_their_configs_say() -> None:
    page = (ROOT / "docs" / "from_the_paper.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `model\.(\w+)` \| (`.+`) \|$", page, re.MULTILINE)
    assert {"norm_placement", "norm", "activation", "init"} <= {name for name, _ in rows}
    models = [load_config(f"reference/{name}.yaml").model for name in REFERENCES]
    for name, cells in rows:
        told = [parse_yaml(cell.strip("`"), name) for cell in cells.split(" | ")]
        assert told == [getattr(model, name) for model in models], name


def test_a_decision_is_short_and_says_why_what_and_what_follows() -> None:
    wrong = []
    for record in DECISIONS:
        text, number = record.read_text(encoding="utf-8"), record.name[:4]
        parts = [text.find(f"**{part}.**") for part in ("Context", "Choice", "Consequence")]
        has_parts = -1 not in parts and parts == sorted(parts)
        has_title = number.isdecimal() and text.startswith(f"# {number} ")
        if not has_parts or not has_title or text.count("\n") > 20:
            wrong.append(record.name)
    assert wrong == []


def test_decisions_have_numbers_of_their_own() -> None:
    numbers = [record.name[:4] for record in DECISIONS]
    assert len(set(numbers)) == len(numbers)


TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
CASES = dict(zip("ABCDEFGH", (24, 14, 12, 11, 16, 14, 6, 13), strict=True))  # of each group


def test_every_test_that_is_mentioned_exists() -> None:
    missing = [
        f"{place(document)}: {path}::{name}"
        for document in DOCUMENTS
        for path, name in TEST.findall(document.read_text(encoding="utf-8"))
        if not (ROOT / path).is_file() or name not in names_in(ROOT / path)
    ]
    assert missing == []


def test_the_page_on_reliability_has_every_case_with_a_test_or_what_it_waits_for() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([A-H]\d+) \|(.*)$", page, re.MULTILINE))
    wanted = {f"{group}{i}" for group, number in CASES.items() for i in range(1, number + 1)}
    assert rows.keys() == wanted
    for case, row in rows.items():
        assert TEST.search(row) or "waits for" in row, case


def test_a_case_of_the_slow_tiers_has_a_slow_test() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-J]\d+\w?) \|(.*)\| (T[^|]*) \|$", page, re.MULTILINE)
    assert len(rows) > 100
    for case, row, tiers in rows:
        is_slow = any(name in slow_tests(ROOT / path) for path, name in TEST.findall(row))
        assert is_slow or "(slow)" in row or tiers == "T0", case


@cache
def slow_tests(path: Path) -> set[str]:
    """The test functions of a file that are marked slow, or some of their parameters, or their file."""
    text = path.read_text(encoding="utf-8")
    functions = [one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)]
    if "\npytestmark = pytest.mark.slow\n" in text:
        return {one.name for one in functions}
    return {one.name for one in functions if any("mark.slow" in ast.unparse(mark) for mark in one.decorator_list)}


@pytest.mark.parametrize(("way", "sections"), [("of a pair", "12345"), ("of a sentence", "6")])
def test_each_way_on_the_path_of_data_is_told_with_at_most_twenty_files(way: str, sections: str) -> None:
    page = (ROOT / "docs/path_of_data.md").read_text(encoding="utf-8")
    told = re.findall(r"^## (\d)\. .*\n((?:(?!## ).*\n)*)", page, re.MULTILINE)
    files = {match[1] for number, text in told if number in sections for match in MODULE.finditer(text)}
    assert [number for number, _ in told if number in sections] == [*sections]
    assert 10 < len(files) <= 20, f"docs/path_of_data.md, the way {way}: {len(files)} files: {sorted(files)}"
