"""Words whose ids are kept, so that the tokenizer encodes each of them once."""
