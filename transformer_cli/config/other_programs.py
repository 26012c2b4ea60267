"""What other programs call the settings, options and commands of tfm: their users type these names first.

Each table has a name of tfm, and behind it the names of others: those of JoeyNMT, fairseq, OpenNMT, Marian, Sockeye and Transformers among them.
Where a name is a flag elsewhere, the setting has its value: runtime.device=cuda for gpu.
"""

import os
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple


def meant_by(name: str, table: Mapping[str, str]) -> list[str]:
    """All that a name of another program may mean here, in the order of a table."""
    return [ours for ours, theirs in table.items() if name in theirs.split()]


SETTINGS = {
    "name": "experiment experimentname expname modeldir outputdir runname savedir savemodel",
    "seed": "randomseed",
    "data.source_language": "sourcelang src srclang",
    "data.target_language": "targetlang tgt tgtlang trg",
    "tokenizer.kind": "tokenizertype",
    "tokenizer.kind=bpe": "bpe",
    "tokenizer.kind=sentencepiece": "sentencepiece",
    "tokenizer.vocab_size": (
        "bpecodes bpeoperations dimvocabs mergeops numwords nwordssrc nwordstgt srcvocabsize tgtvocabsize "
        "vocab vocabulary voclimit"
    ),
    "tokenizer.min_frequency": "minfreq minfrequency thresholdsrc thresholdtgt vocminfreq wordmincount",
    "tokenizer.shared=true": "joineddictionary sharedvocab sharevocab",
    "model.preset=base": "arch",
    "model.d_model": (
        "decoderembeddim dim dimemb embeddim embsize encoderembeddim hiddendim hiddensize numembed rnnsize "
        "transformermodelsize wordvecsize"
    ),
    "model.num_heads": (
        "attentionheads decoderattentionheads encoderattentionheads heads nhead nheads numattentionheads "
        "transformerattentionheads transformerheads"
    ),
    "model.d_ff": (
        "decoderffnembeddim dff dimfeedforward encoderffnembeddim ffn ffndim ffsize transformerdimffn "
        "transformerfeedforwardnumhidden transformerff"
    ),
    "model.encoder_layers": "encdepth enclayers encoderlayers layers nlayers numencoderlayers numlayers",
    "model.decoder_layers": "decdepth declayers decoderlayers numdecoderlayers",
    "model.max_length": (
        "maxseqlen maxseqlength maxsourcelength maxsourcepositions maxtargetlength maxtargetpositions "
        "srcseqlength tgtseqlength"
    ),
    "model.dropout": "dropoutrate transformerdropout transformerdropoutprepost",
    "model.embedding_dropout": "embeddropout",
    "model.attention_dropout": "transformerdropoutattention",
    "model.ff_dropout": "activationdropout reludropout transformerdropoutact",
    "model.norm_placement": "layernorm transformerpostprocess transformerpreprocess",
    "model.norm_placement=post": "postnorm",
    "model.norm_placement=pre": "decodernormalizebefore encodernormalizebefore normalizebefore normfirst prenorm",
    "model.embedding_norm=true": "layernormembedding",
    "model.activation": "activationfn activationfunction transformeractivationtype transformerffnactivation",
    "model.activation=relu": "relu",
    "model.positions": "positionalencoding positionencoding",
    "model.positions=learned": "decoderlearnedpos encoderlearnedpos",
    "model.positions=rotary": "rope rotaryembedding",
    "model.tie_embeddings": "tiedembeddings tieweights weighttying weighttyingtype",
    "model.tie_embeddings=all": "shareallembeddings shareembeddings srctrgsoftmax tiedembeddingsall",
    "model.tie_embeddings=target-output": (
        "sharedecoderembeddings sharedecoderinputoutputembed tiedsoftmax trgsoftmax"
    ),
    "model.init": "initializer paraminit weightinit",
    "model.init=xavier": "paraminitglorot",
    "training.init_from": (
        "finetune finetunefrommodel loadmodel modelnameorpath params pretrained pretrainedmodel restorefile trainfrom"
    ),
    "training.frozen": "fixedparamnames",
    "training.optimizer": "optim",
    "training.betas": "adambetas optimizerbetas",
    "training.epsilon": "adameps adamepsilon eps optimizereps",
    "training.weight_decay": "wd",
    "training.max_steps": (
        "after afterbatches iterations iters maxiters maxtrainsteps maxupdate maxupdates numsteps steps "
        "trainsteps updates"
    ),
    "training.max_epochs": "afterepochs epoch epochs maxepoch maxnumepochs nepochs numepochs numtrainepochs",
    "training.batch_tokens": "batchtype maxtokens minibatchwords tokensperbatch",
    "training.batch_tokens=auto": "minibatchfit workspace",
    "training.batch_sentences": "batch batchsize bs minibatch perdevicetrainbatchsize trainbatchsize",
    "training.accumulate": (
        "accumcount batchmultiplier gradaccum gradientaccumulation gradientaccumulationsteps optimizerdelay "
        "updatefreq updateinterval"
    ),
    "training.schedule": "decaymethod learningrateschedulertype lrscheduler lrschedulertype scheduler scheduling",
    "training.schedule=inverse_sqrt": "invsqrtdecay lrdecayinvsqrt rsqrt warmupinversesquareroot",
    "training.schedule=plateau": "plateaureduce",
    "training.learning_rate": "baselr initiallearningrate learnrate lr peaklr",
    "training.min_learning_rate": "learningratemin minlr stopminlr",
    "training.plateau_factor": "decreasefactor learningratereducefactor",
    "training.plateau_patience": "learningratereducenumnotimproved",
    "training.warmup_steps": "learningratewarmup lrwarmup warmup warmupupdates",
    "training.label_smoothing": "labelsmoothingfactor smoothing",
    "training.clip_norm": "clip clipgradnorm gradclip gradientclippingthreshold maxgradnorm",
    "training.ema_decay": "averagedecay ema exponentialsmoothing",
    "training.log_every": "dispfreq loggingfreq loggingsteps loginterval reportevery",
    "training.validate_every": (
        "evalsteps validateinterval validateintervalupdates validationfreq validfreq validsteps"
    ),
    "training.save_every": (
        "checkpointinterval savecheckpointsteps savefreq saveinterval saveintervalupdates savesteps"
    ),
    "training.keep_last": "keepcheckpoint keepintervalupdates keeplastepochs keeplastparams savetotallimit",
    "training.keep_best": "cachelastbestparams keepbestcheckpoints keepbestckpts",
    "training.best_metric": "bestcheckpointmetric earlystoppingmetric metricforbestmodel optimizedmetric",
    "training.patience": "earlystopping maxnumcheckpointnotimproved",
    "validation.scores": "evalbleu evalmetrics validmetrics",
    "decoding.beam_size": "beam beams beamsize beamwidth generationnumbeams numbeams",
    "decoding.length_penalty": "alpha beamalpha lengthpenaltyalpha lenpen normalize",
    "decoding.num_best": "nbest nbestsize numreturnsequences",
    "decoding.max_length": "generationmaxlength maxlen maxlenb maxlength maxnewtokens maxoutputlength",
    "decoding.max_length_ratio": "maxlena maxlengthfactor",
    "decoding.min_length": "minlen",
    "decoding.no_repeat_ngram_size": "norepeatngram",
    "decoding.sampling.temperature": "temperature",
    "decoding.sampling.temperature=1.0": "dosample",
    "decoding.sampling.top_k": "samplingtopk",
    "decoding.sampling.top_p": "samplingtopp",
    "decoding.allow_unknown=true": "allowunk",
    "runtime.device=cpu": "cpu nocuda usecpu",
    "runtime.device=cuda": "cuda deviceid devices gpu gpuranks gpus usecuda usegpu",
    "runtime.precision": "dtype modeldtype",
    "runtime.precision=bfloat16": "amp apexamp bf16 fp16",
    "runtime.threads": "cputhreads numthreads",
    "runtime.workers": "dataloadernumworkers numworkers preprocessingnumworkers",
    "runtime.compile=true": "torchcompile",
    "data.root": "datadir",
    "data.validation_share": "validsplit",
    "data.test_share": "testsplit",
    "data.corpora": (
        "dataset datasetname testfile testpref traindata trainfile trainpref trainsets validationfile "
        "validationsource validationtarget validpref validsets"
    ),
}
"""Without dashes and underscores."""


NEEDED = {
    "tokenizer.shared=true": "model.tie_embeddings=all",
    "training.optimizer=adamw": "training.weight_decay",
    "training.schedule=plateau": "training.plateau_factor",
    "training.batch_tokens=null": "training.batch_sentences",
    "training.update_tokens=25000": "training.batch_tokens=auto",
}
"""What the settings behind need beside them: alone they contradict a config such as en-it.yaml."""


WHEN_TRANSLATING = {
    "decoding.batch_tokens": "training.batch_tokens",
    "decoding.batch_tokens=4096": "training.batch_sentences",
    "decoding.max_length": "model.max_length",
}
"""What these settings of a training are called where a trained model translates. Batches are counted in tokens there."""


OPTIONS = {
    "--run": "model models m checkpoint path config",
    "--config": "cfg yaml run",
    "--input": "in file i input-file src source document doc",
    "--source": "src",
    "--target": "tgt",
    "--output": "o out output-file",
    "--reference": "ref references",
    "--against": "hyp",
    "--from": "source-lang src-lang source-language src source sl s",
    "--source-language": "source-lang src-lang from languages src source sl s",
    "--to": "target-lang tgt-lang lang target-language tgt target trg tl t",
    "--target-language": "target-lang tgt-lang to languages lang tgt target trg tl t",
    "--beam-size": "beam beams num-beams beam-width",
    "--n-best": "nbest nbest-size n-best-list num-hypotheses num-return-sequences",
    "--scores": "metric metrics",
    "--force": "overwrite",
    "--from-scratch": "overwrite",
    "--dry-run": "dry",
    "--alignment": "report-align print-alignment",
    "--replace-unknown": "replace-unk",
    "--dictionary": "phrase-table",
}
"""Without the two dashes in front."""
_LANGUAGE_OPTIONS = ("--from", "--source-language", "--to", "--target-language")


def options_meant_by(name: str, value: str | None, known: Collection[str]) -> list[str]:
    """The options of a command that an option of another program may mean.

    Its value tells --src en, the language, from --src train.en, a file.

    Args:
        name: without the two dashes in front, with dashes inside.
        value: that was given to it; None: none.
        known: the options of the command.
    """
    if {"--split", "--source"}.issubset(known) and name in ("input", "in", "i", "file", "input-file"):
        return ["--source"]  # a text in place of a split
    meant = [one for one in (f"--{name}", *meant_by(name, OPTIONS)) if one in known]
    others = [one for one in meant if one not in _LANGUAGE_OPTIONS]
    if value is None or len(others) == len(meant):
        return others or meant
    if _is_file(value):
        return others
    is_language = re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*", value) is not None
    return [one for one in meant if one in _LANGUAGE_OPTIONS] if is_language else others or meant


def _is_file(value: str) -> bool:
    """Whether a value is the name of a file, by its looks or because there is one."""
    return os.path.exists(value) or re.search(r"[./\\]", value) is not None


class _Instead(NamedTuple):
    """What to do here where other programs have an option, and no option or setting of tfm takes its value."""

    commands: str
    """The commands whose option it would be; empty: all."""
    names: str
    """Without the two dashes in front."""
    hint: str
    """With OPTION for the option that was typed, and VALUE for its value."""
    needs_file: bool = False
    """Whether only the name of a file as value is meant so."""


_TEXTS = (
    "the texts stand in a config: tfm init writes one for a table or two files, or for a folder with files for training, validation "
    "and test; or name the files in data.corpora of a config (docs/own_corpus.md)"
)
_TRAINED = "train data benchmark student"
_INSTEAD = (
    _Instead(
        "translate",
        "tgt target trg ref refs reference references gold score-reference",
        "given translations are not read here, and --output would replace that file: tfm likelihood --source SOURCE --target VALUE prints "
        "how probable they are, tfm score OUTPUT VALUE compares the output with them",
        needs_file=True,
    ),
    _Instead(
        _TRAINED,
        "source target source-file target-file train-src train-tgt train-source train-target train-file validation-source "
        "validation-target validation-file valid-src valid-tgt valid-source valid-target trainpref validpref testpref train-sets "
        "valid-sets train-data prepared-data dataset dataset-name test-file corpora data",
        _TEXTS,
    ),
    _Instead(_TRAINED, "src tgt trg s t d train valid validation dev test", _TEXTS, needs_file=True),
    _Instead(
        _TRAINED,
        "vocab vocabs vocabulary src-vocab tgt-vocab source-vocab target-vocab srcdict tgtdict bpe-codes src-subword-model "
        "tgt-subword-model",
        "the vocabulary is learned from the corpus when the training begins, by tokenizer.kind and tokenizer.vocab_size; one of another "
        "program is not read",
        needs_file=True,
    ),
    _Instead(
        "train",
        "train-from load-model restore-file",
        "to continue a run, the same command once more, without OPTION; to train the weights of another run further: "
        "--set training.init_from=VALUE",
    ),
    _Instead(
        "train",
        "world-size distributed-world-size num-gpus n-gpus nproc-per-node num-processes dist distributed use-ddp local-rank master-ip "
        "master-port",
        "torchrun starts several processes: torchrun --nproc-per-node 2 -m transformer_cli train --config en-it.yaml (docs/scaling.md)",
    ),
    _Instead(
        "translate validate likelihood next explain align serve calibrate",
        "checkpoints",
        "one checkpoint is read with --run RUN/checkpoints/step-00001000; tfm average --run RUN 1000 2000 makes the mean of several",
    ),
    _Instead(
        "average",
        "models checkpoints inputs",
        "the run is named, and the steps of its checkpoints follow: tfm average --run RUN 1000 2000",
    ),
    _Instead(
        "translate",
        "verbose v",
        "progress and warnings are told anyway, on standard error; --json prints the score of each translation, --json --details its tokens",
    ),
    _Instead("", "verbose", "progress and warnings are told anyway, on standard error: leave out OPTION"),
)


def option_instead(command: str, name: str, value: str | None) -> str:
    """What to do in place of an option of another program that no option or setting of a command replaces; empty: nothing is known.

    Args:
        name: without the two dashes in front, with dashes inside.
        value: that was given to it; None: none.
    """
    return next(
        (
            one.hint
            for one in _INSTEAD
            if name in one.names.split()
            and (not one.commands or command in one.commands.split())
            and (not one.needs_file or (value is not None and _is_file(value)))
        ),
        "",
    )


LISTS = (
    "training.betas",
    "training.frozen",
    "validation.scores",
    "validation.sequence_lengths",
    "tokenizer.user_symbols",
)
"""Settings whose value is a list: other programs divide the items by commas, colons or spaces."""
OTHER_SETTING = {
    "decoding.length_penalty=avg": "decoding.length_normalization=average",
    "decoding.length_penalty=wu": "decoding.length_normalization=gnmt",
    "decoding.length_penalty=none": "decoding.length_penalty=0.0",
}
"""Settings with a value that other programs have there, and that another setting has here."""


ARGUMENTS = {
    "hypothesis": "hyp hypotheses i in input file sys system translations",
    "references": "ref refs reference r",
    "files": "input file i src source tgt target trg",
    "sentences": "text sentence",
    "corpus": "input file dataset path train-file src source tgt target trg",
}
"""What stands without an option here. Without the two dashes in front."""


COMMANDS = {
    "train": "fit finetune fine-tune resume",
    "translate": "predict infer generate decode decoder interactive",
    "validate": "test eval evaluate",
    "score": "bleu sacrebleu",
    "likelihood": "scorer",
    "average": "average-models average-checkpoints",
    "data clean": "clean",
    "data check": "check",
    "data get": "download",
    "export": "convert",
    "serve": "server",
    "runs": "list",
    "runs compare": "compare",
    "--help": "help",
    "--version": "version",
}
_COMMANDS_INSTEAD = {
    "tfm init writes a config for a corpus, and tfm train prepares the data itself; tfm data --config shows what it will read": (
        "preprocess prepare prepare-data"
    ),
    "the vocabulary is learned when the training begins, by tokenizer.kind and tokenizer.vocab_size of the config that tfm init writes": (
        "build-vocab vocab learn-bpe apply-bpe learn-joint-bpe-and-vocab spm-train spm-encode"
    ),
    "tfm validate --split test translates and scores the test text of a run; tfm translate --input translates any other": (
        "generate fairseq-generate"
    ),
    "tfm translate without a text asks for sentences in a terminal": "interactive fairseq-interactive",
    "tfm score compares translations with references": "sockeye-evaluate",
    "tfm likelihood prints how probable given translations are": "sockeye-score",
    "tfm train": "marian",
    "tfm shortlist": "sockeye-lexicon",
}


def command_instead(*names: str) -> str:
    """What to do here in place of a command of another program; empty: nothing is known. The first name comes first."""
    return next((ours for name in names for ours in meant_by(name, _COMMANDS_INSTEAD)), "")
