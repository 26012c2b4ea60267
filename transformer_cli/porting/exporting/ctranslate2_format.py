"""The export format `ctranslate2`: a folder for the CTranslate2 library, with a tokenizer for each side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_cli.config import Config
from transformer_cli.interchange.ctranslate2_files import (
    TokenNames,
    ctranslate2_files,
    unsupported_settings,
)
from transformer_cli.interchange.standard_tokenizers import (
    SHARED_FILE,
    SOURCE_FILE,
    TARGET_FILE,
    tokenizer_json_with_end,
)
from transformer_cli.porting.exporting.export_format import (
    Decoded,
    Obstacle,
    OtherEngine,
    Quantization,
    add_to_folder,
)
from transformer_cli.text import Tokenizer

if TYPE_CHECKING:  # the import of PyTorch takes seconds
    from transformer_cli.checkpoint import TrainedModel

NEVER_WRITTEN = (Tokenizer.pad_id, Tokenizer.sos_id)
"""The special tokens that are banned beside [UNK]."""


@dataclass(frozen=True, slots=True)
class CTranslate2Format:
    """See `ExportFormat`."""

    name: str = "ctranslate2"
    modules: tuple[str, ...] = ("ctranslate2",)
    suffix: str = ""

    def obstacles(self, config: Config) -> list[Obstacle]:
        reason = "CTranslate2 has no such layer"
        return [Obstacle(setting, reason) for setting in unsupported_settings(config.model)]

    def write(
        self, trained: "TrainedModel", path: Path, *, quantization: Quantization | None
    ) -> None:
        source, target = trained.source_tokenizer, trained.target_tokenizer
        names = TokenNames.of_entries(source, target)
        files = ctranslate2_files(trained.model, target, names, quantization=quantization)
        tokenizers = {SOURCE_FILE: source, TARGET_FILE: target}
        if source is target:
            tokenizers = {SHARED_FILE: source}
        for name, tokenizer in tokenizers.items():
            files[name] = tokenizer_json_with_end(tokenizer).encode()
        add_to_folder(path, files)

    def open(self, path: Path) -> OtherEngine:
        return CTranslate2WithTokenizers(path)

    def add_files(self, path: Path, files: Mapping[str, bytes]) -> None:
        add_to_folder(path, files)

    def usage(self, trained: "TrainedModel", name: str) -> str:
        is_shared = trained.source_tokenizer is trained.target_tokenizer
        files = (SHARED_FILE, SHARED_FILE) if is_shared else (SOURCE_FILE, TARGET_FILE)
        decoding = trained.config.decoding
        banned = [[trained.target_tokenizer.entries[index]] for index in NEVER_WRITTEN]
        tags = trained.target_tokenizer.special_tokens[4:]
        tag = f"{tags[0]}" if tags else ""
        return f"""\
```python
import ctranslate2  # pip install ctranslate2 tokenizers
from tokenizers import Tokenizer

folder = "{name}"
source = Tokenizer.from_file(f"{{folder}}/{files[0]}")
target = Tokenizer.from_file(f"{{folder}}/{files[1]}")
translator = ctranslate2.Translator(folder)
tokens = source.encode("{tag}Good morning.").tokens  # the tokenizer appends [EOS]
[result] = translator.translate_batch(
    [tokens], beam_size={decoding.beam_size}, disable_unk=True, suppress_sequences={banned!r}
)
ids = [target.token_to_id(token) for token in result.hypotheses[0]]
print(target.decode(ids))
```
"""


class CTranslate2WithTokenizers:
    """An `OtherEngine`: `ctranslate2` and `tokenizers`, used as in the README of the folder."""

    def __init__(self, folder: Path) -> None:
        import ctranslate2
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        shared, source, target = (folder / name for name in (SHARED_FILE, SOURCE_FILE, TARGET_FILE))
        is_shared = shared.is_file()
        self._source: Any = HuggingFaceTokenizer.from_file(str(shared if is_shared else source))
        self._target: Any = HuggingFaceTokenizer.from_file(str(shared if is_shared else target))
        self._translator: Any = ctranslate2.Translator(str(folder), device="cpu")
        self._banned = [[self._target.id_to_token(index)] for index in NEVER_WRITTEN]
        self._name = f"CTranslate2 {ctranslate2.__version__}"

    def describe(self) -> str:
        return self._name

    def decode(self, sources: Sequence[str], limits: Sequence[int]) -> list[Decoded]:
        encoded = self._source.encode_batch(list(sources))
        results = self._translator.translate_batch(
            [one.tokens for one in encoded],
            beam_size=1,
            return_end_token=True,
            max_input_length=0,
            max_decoding_length=max(limits),
            min_decoding_length=0,
            max_batch_size=32,
            disable_unk=True,
            suppress_sequences=self._banned,
        )
        found = []
        for source, result, limit in zip(encoded, results, limits, strict=True):
            ids = [self._target.token_to_id(token) for token in result.hypotheses[0][:limit]]
            found.append(Decoded(tuple(source.ids), tuple(ids), self._target.decode(ids)))
        return found
