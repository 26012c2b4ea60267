"""The metadata of a model card: the YAML that the Hugging Face hub reads, with scores as `model-index`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transformer_cli.config import Config, HubData
from transformer_cli.evaluation.validation import DirectionReport
from transformer_cli.process.extras import require_extra

if TYPE_CHECKING:
    from transformer_cli.extensions.exchange.porting.card.model_card import CardWishes


def metadata_of(
    config: Config, reports: Sequence[DirectionReport], wishes: "CardWishes", library: str
) -> str:
    """The metadata as YAML; nothing that neither the run nor the user says.

    Raises:
        UsageError: the package huggingface_hub is missing.
    """
    require_extra("export", ("huggingface_hub",), purpose="a model card")
    from huggingface_hub import EvalResult, ModelCardData

    results: list[Any] = [
        EvalResult(
            task_type="translation",
            dataset_type="validation",
            dataset_name=f"validation split of {config.name}",
            dataset_config=str(report.direction),
            dataset_split="validation",
            metric_type=score.name.lower(),
            metric_name=score.name,
            metric_value=round(score.value, 2),
            metric_args={"signature": score.signature},
        )
        for report in reports
        for score in report.scores
    ]
    languages = dict.fromkeys(one for pair in config.data.directions for one in pair)
    metadata: Any = ModelCardData(
        language=[*languages],
        license=wishes.license,
        library_name=library,
        pipeline_tag="translation",
        tags=["translation", "tfm"],
        datasets=_datasets(config) or None,
        metrics=["bleu", "chrf"] if results else None,
        base_model=wishes.base_model,
        model_name=config.name,
        eval_results=results or None,
    )
    return f"{metadata.to_yaml()}\n"


def _datasets(config: Config) -> list[str]:
    """Names of data sets on the hub; files have none."""
    data = config.data
    if not isinstance(data, HubData):
        return []
    names = dict.fromkeys(corpus.dataset for corpus in data.corpora if corpus.data_files is None)
    return [name for name in names if not name.startswith((".", "/"))]
