"""Our tokenizers as a tokenizer.json for other programs, which then add [EOS] to each source by themselves."""

import json

from transformer_cli.text import Tokenizer

SOURCE_FILE, TARGET_FILE, SHARED_FILE = "source.tokenizer.json", "target.tokenizer.json", "tokenizer.json"  # fmt: skip


def tokenizer_json_with_end(tokenizer: Tokenizer) -> str:
    """A tokenizer.json whose `encode` appends [EOS] to a text, as our models read it.

    Apart from that it gives the ids of `Tokenizer.encode`, with one exception: the library takes the names of special
    tokens, such as `[EOS]`, for these tokens if they stand in a text.
    """
    content = json.loads(tokenizer.to_json())
    end = tokenizer.entries[tokenizer.eos_id]
    of_end = {"SpecialToken": {"id": end, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [text, of_end],
        "pair": [text, of_end, {"Sequence": {"id": "B", "type_id": 1}}, of_end],
        "special_tokens": {end: {"id": end, "ids": [tokenizer.eos_id], "tokens": [end]}},
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
