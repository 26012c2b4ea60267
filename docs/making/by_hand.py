"""Blocks of output, or without a language, that no marker makes: how many each page has, and why."""

BY_HAND = {
    "docs/corpora.md": (1, "tfm data check on Multi30k, which is not part of the repository"),
    "docs/corrections.md": (1, "messages about a file that the reader has corrected"),
    "docs/exercises.md": (
        5,
        "a command that writes a folder, and checks of a folder that is partly filled in",
    ),
    "docs/zh/exercises.md": (
        5,
        "the blocks of docs/exercises.md, which the page takes over",
    ),
    "docs/experiments.md": (6, "measured; the text gives the commands"),
    "docs/exporting.md": (3, "exports of other runs, and measured speeds"),
    "docs/fast_translation.md": (1, "a message that names the kernels of one processor"),
    "docs/glossary.md": (1, "a file that the reader writes"),
    "docs/hugging_face.md": (4, "commands that the reader types, and exports of other runs"),
    "docs/path_of_data.md": (1, "a drawing"),
    "docs/real_text.md": (2, "the letter comes from a longer training than docs/run"),
    "docs/serving.md": (7, "commands and files that the reader types, and a stream of a server"),
    "docs/training.md": (1, "two lines of a log, to explain their words"),
    "docs/translating.md": (1, "a dialogue at a terminal, with docs/run"),
    "docs/the_page.md": (3, "commands that the reader types"),
}
"""The page, the number of its blocks, and the reason. A new block needs a marker: see CONTRIBUTING.md."""
