"""Translation with a trained model: the text pipeline, engines, search, and the translator over them."""

from transformer_cli.decoding.engine import Engine as Engine
from transformer_cli.decoding.engine import ExplainingEngine as ExplainingEngine
from transformer_cli.decoding.engine import Explanation as Explanation
from transformer_cli.decoding.engine import Hypothesis as Hypothesis
from transformer_cli.decoding.engine import InterruptibleEngine as InterruptibleEngine
from transformer_cli.decoding.engine import Request as Request
from transformer_cli.decoding.engine import SpecialIds as SpecialIds
from transformer_cli.decoding.engine import Term as Term
from transformer_cli.decoding.engine import TokenIds as TokenIds
from transformer_cli.decoding.glossary import AppliedTerm as AppliedTerm
from transformer_cli.decoding.glossary import Glossary as Glossary
from transformer_cli.decoding.text_pipeline import TextPipeline as TextPipeline
from transformer_cli.decoding.translation import Alternative as Alternative
from transformer_cli.decoding.translation import LineDetails as LineDetails
from transformer_cli.decoding.translation import PartDetails as PartDetails
from transformer_cli.decoding.translation import SourceText as SourceText
from transformer_cli.decoding.translation import TextPart as TextPart
from transformer_cli.decoding.translation import Translation as Translation
from transformer_cli.decoding.translation import UnknownWords as UnknownWords
from transformer_cli.decoding.translator import Translator as Translator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from transformer_cli.decoding.glossary_files import read_glossary as read_glossary


def __getattr__(name: str) -> object:
    """`read_glossary`, imported when asked for: most translations have no glossary."""
    if name != "read_glossary":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from transformer_cli.decoding import glossary_files

    return glossary_files.read_glossary
