"""The export format `ctranslate2`: a folder for the CTranslate2 library, with a tokenizer for each side."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_cli.config import Config
from transformer_cli.extensions.exchange.interchange.ctranslate2_files import (
    BuiltIn,
    TokenNames,
    ctranslate2_files,
    unsupported_settings,
)
from transformer_cli.extensions.exchange.interchange.foreign_tokenizers.sentencepiece_writing import (
    is_of_sentencepiece,
    sentencepiece_bytes,
)
from transformer_cli.extensions.exchange.interchange.position_tables import MIN_POSITIONS
from transformer_cli.extensions.exchange.interchange.standard_tokenizers import (
    SHARED_FILE,
    SOURCE_FILE,
    TARGET_FILE,
    tokenizer_json_with_end,
)
from transformer_cli.extensions.exchange.porting.exporting.ctranslate2_programs import (
    SOURCE_SPM,
    CTranslate2WithSentencePiece,
    CTranslate2WithTokenizers,
)
from transformer_cli.extensions.exchange.porting.exporting.export_format import (
    Obstacle,
    OtherEngine,
    Quantization,
    add_to_folder,
)
from transformer_cli.process.errors import MissingInputError
from transformer_cli.process.extras import require_extra

if TYPE_CHECKING:  # the import of PyTorch takes seconds
    from torch import Tensor

    from transformer_cli.checkpoint import TrainedModel

MODEL_FILE = "model.bin"
"""The weights."""


@dataclass(frozen=True, slots=True)
class CTranslate2Format:
    """See `ExportFormat`."""

    name: str = "ctranslate2"
    modules: tuple[str, ...] = ("ctranslate2",)
    suffix: str = ""
    quantizations: tuple[Quantization, ...] = ("int8",)
    library: str = "ctranslate2"

    def obstacles(self, config: Config) -> list[Obstacle]:
        reason = "CTranslate2 has no such layer"
        return [Obstacle(setting, reason) for setting in unsupported_settings(config.model)]

    def write(
        self, trained: "TrainedModel", path: Path, *, quantization: Quantization | None
    ) -> None:
        source, target = trained.source_tokenizer, trained.target_tokenizer
        names = TokenNames.of_entries(source, target)
        files = ctranslate2_files(
            trained.model,
            target,
            names,
            quantization=quantization,
            built_in=BuiltIn(min_positions=MIN_POSITIONS),
        )
        if is_of_sentencepiece(source):
            require_extra(
                "export", ("sentencepiece", "google.protobuf"), purpose="tfm export of this run"
            )
            files[SOURCE_SPM] = sentencepiece_bytes(source)
        else:
            tokenizers = {SOURCE_FILE: source, TARGET_FILE: target}
            if source is target:
                tokenizers = {SHARED_FILE: source}
            for name, tokenizer in tokenizers.items():
                files[name] = tokenizer_json_with_end(tokenizer).encode()
        add_to_folder(path, files)

    def open(self, path: Path) -> OtherEngine:
        if (path / SOURCE_SPM).is_file():
            return CTranslate2WithSentencePiece(path)
        return CTranslate2WithTokenizers(path)

    def add_files(self, path: Path, files: Mapping[str, bytes]) -> None:
        add_to_folder(path, files)

    def stored_tensors(self, path: Path) -> "dict[str, Tensor] | None":
        from transformer_cli.extensions.exchange.interchange.ctranslate2_weights import read_weights

        file = path / MODEL_FILE
        try:
            return read_weights(file.read_bytes(), str(file))
        except FileNotFoundError:
            raise MissingInputError(f"{file}: no such file", hint="copy the whole folder") from None

    def usage(self, trained: "TrainedModel", name: str) -> str:
        source, target = trained.source_tokenizer, trained.target_tokenizer
        banned = [[target.entries[index]] for index in (target.pad_id, target.sos_id)]
        banned += [[target.entries[index]] for index in target.tag_ids]
        search = (
            f"beam_size={trained.config.decoding.beam_size}, disable_unk=True, "
            f"suppress_sequences={banned!r}"
        )
        tags = source.special_tokens[4:]
        tag = tags[0] if tags else ""
        if is_of_sentencepiece(source):
            return _USAGE_OF_SENTENCEPIECE.format(
                name=name, file=SOURCE_SPM, tags=[*tags[:1]], search=search
            )
        files = (SHARED_FILE, SHARED_FILE) if source is target else (SOURCE_FILE, TARGET_FILE)
        return _USAGE.format(name=name, files=files, tag=tag, search=search)


_USAGE = """\
```python
import ctranslate2  # pip install ctranslate2 tokenizers
from tokenizers import Tokenizer

folder = "{name}"
source = Tokenizer.from_file(f"{{folder}}/{files[0]}")
target = Tokenizer.from_file(f"{{folder}}/{files[1]}")
translator = ctranslate2.Translator(folder)
tokens = source.encode("{tag}Good morning.").tokens  # the tokenizer appends [EOS]
[result] = translator.translate_batch([tokens], {search})
ids = [target.token_to_id(token) for token in result.hypotheses[0]]
print(target.decode(ids))
```
"""
_USAGE_OF_SENTENCEPIECE = """\
```python
import ctranslate2  # pip install ctranslate2 sentencepiece
from sentencepiece import SentencePieceProcessor

folder = "{name}"
source = SentencePieceProcessor(model_file=f"{{folder}}/{file}")
translator = ctranslate2.Translator(folder)
tokens = [*{tags}, *source.encode("Good morning.", out_type=str), "[EOS]"]
[result] = translator.translate_batch([tokens], {search})
print("".join(result.hypotheses[0]).replace("\u2581", " ").strip())
```
"""
