"""Files that hold text: what is text is translated, everything else stays byte for byte.

The way of a file: `formats.read_document` reads it as a `Document` of `Segment`s; `translate_document` asks a
`TextTranslator`, such as `ModelTranslator`, for the translations of all sentences at once, and moves the markup with
its words; the document writes itself with them.
"""

from transformer_cli.extensions.documents.formats import FORMATS as FORMATS
from transformer_cli.extensions.documents.formats import Format as Format
from transformer_cli.extensions.documents.formats import format_named as format_named
from transformer_cli.extensions.documents.formats import format_of as format_of
from transformer_cli.extensions.documents.formats import read_document as read_document
from transformer_cli.extensions.documents.translation import Doubt as Doubt
from transformer_cli.extensions.documents.translation import (
    TranslatedDocument as TranslatedDocument,
)
from transformer_cli.extensions.documents.translation import (
    translate_document as translate_document,
)
from transformer_cli.extensions.documents.translator import ModelTranslator as ModelTranslator
