"""What other programs call the settings of tfm: their users type these names first."""

import re

# The names are in small letters, without dashes and underscores.
_SETTINGS = {
    "epochs": "training.max_epochs", "nepochs": "training.max_epochs", "numepochs": "training.max_epochs",
    "epoch": "training.max_epochs", "numtrainepochs": "training.max_epochs", "maxepoch": "training.max_epochs",
    "steps": "training.max_steps", "trainsteps": "training.max_steps", "numsteps": "training.max_steps",
    "maxupdate": "training.max_steps", "maxupdates": "training.max_steps", "updates": "training.max_steps",
    "iterations": "training.max_steps", "iters": "training.max_steps", "maxiters": "training.max_steps",
    "lr": "training.learning_rate", "learnrate": "training.learning_rate",
    "lrscheduler": "training.schedule", "scheduler": "training.schedule", "lrschedulertype": "training.schedule",
    "warmup": "training.warmup_steps", "warmupupdates": "training.warmup_steps",
    "batchsize": "training.batch_sentences", "batch": "training.batch_sentences", "bs": "training.batch_sentences",
    "perdevicetrainbatchsize": "training.batch_sentences", "trainbatchsize": "training.batch_sentences",
    "maxtokens": "training.batch_tokens", "tokensperbatch": "training.batch_tokens",
    "updatefreq": "training.accumulate", "accumcount": "training.accumulate",
    "gradientaccumulation": "training.accumulate", "gradientaccumulationsteps": "training.accumulate",
    "optim": "training.optimizer", "eps": "training.epsilon", "wd": "training.weight_decay",
    "clip": "training.clip_norm", "clipgradnorm": "training.clip_norm", "maxgradnorm": "training.clip_norm",
    "smoothing": "training.label_smoothing", "labelsmoothingfactor": "training.label_smoothing",
    "earlystopping": "training.patience", "savesteps": "training.save_every", "saveinterval": "training.save_every",
    "evalsteps": "training.validate_every", "validateinterval": "training.validate_every",
    "loggingsteps": "training.log_every", "loginterval": "training.log_every",
    "savetotallimit": "training.keep_last", "restorefile": "training.init_from", "finetune": "training.init_from",
    "pretrained": "training.init_from", "finetunefrommodel": "training.init_from",
    "layers": "model.encoder_layers", "nlayers": "model.encoder_layers", "encoderlayers": "model.encoder_layers",
    "declayers": "model.decoder_layers", "decoderlayers": "model.decoder_layers",
    "enclayers": "model.encoder_layers", "heads": "model.num_heads", "nhead": "model.num_heads",
    "nheads": "model.num_heads", "hiddensize": "model.d_model", "hiddendim": "model.d_model",
    "dim": "model.d_model", "embeddim": "model.d_model", "ffn": "model.d_ff", "dff": "model.d_ff",
    "ffndim": "model.d_ff", "arch": "model.preset",
    "vocab": "tokenizer.vocab_size", "vocabulary": "tokenizer.vocab_size", "tokenizertype": "tokenizer.kind",
    "minfreq": "tokenizer.min_frequency", "minfrequency": "tokenizer.min_frequency",
    "beam": "decoding.beam_size", "beams": "decoding.beam_size", "numbeams": "decoding.beam_size",
    "beamwidth": "decoding.beam_size", "lenpen": "decoding.length_penalty", "alpha": "decoding.length_penalty",
    "beamsize": "decoding.beam_size", "maxlength": "decoding.max_length",
    "maxlen": "decoding.max_length", "maxlenb": "decoding.max_length", "maxnewtokens": "decoding.max_length",
    "runname": "name", "experiment": "name", "experimentname": "name", "expname": "name", "savedir": "name",
    "outputdir": "name", "randomseed": "seed",
    "gpu": "runtime.device=cuda", "cuda": "runtime.device=cuda", "cpu": "runtime.device=cpu",
    "usegpu": "runtime.device=cuda", "nocuda": "runtime.device=cpu", "gpus": "runtime.device=cuda",
    "fp16": "runtime.precision=bfloat16", "bf16": "runtime.precision=bfloat16", "amp": "runtime.precision=bfloat16",
    "dtype": "runtime.precision", "numworkers": "runtime.workers", "numthreads": "runtime.threads",
    "src": "data.source_language", "srclang": "data.source_language", "sourcelang": "data.source_language",
    "tgt": "data.target_language", "trg": "data.target_language", "tgtlang": "data.target_language",
    "targetlang": "data.target_language", "datadir": "data.root",
    "trainfile": "data.corpora", "trainpref": "data.corpora", "dataset": "data.corpora",
    "validsplit": "data.validation_share", "testsplit": "data.test_share",
}  # fmt: skip


def setting_elsewhere_called(name: str) -> str | None:
    """The setting that a name of another program means, such as training.max_epochs for epochs.

    Where the name is a flag elsewhere, a value follows: runtime.device=cuda for gpu.

    Args:
        name: without a section; dashes, underscores and capitals make no difference.
    """
    return _SETTINGS.get(re.sub(r"[-_]", "", name.lower()))
