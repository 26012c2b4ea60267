#!/usr/bin/env bash
# Tagged back-translation: more training pairs from text of the target language alone.
#
#   bash examples/back_translation.sh CONFIG TRAIN DEV MONO SOURCE TARGET [--set ...]
#
# CONFIG has the model and the training. TRAIN and DEV are plain text without the ending: TRAIN.en and TRAIN.it, if
# SOURCE is en and TARGET is it. MONO.it is text of the target language; the script writes MONO.en.
# It makes the runs back-reverse, which translates from the target language, and back-forward.
# Sources: Sennrich et al. 2016, "Improving Neural Machine Translation Models with Monolingual Data";
# the tag: Caswell et al. 2019, "Tagged Back-Translation".
set -euo pipefail
(($# >= 6)) || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
config=$1 train=$2 dev=$3 mono=$4 source=$5 target=$6
shift 6

# from, to: the languages of this run
corpus() { echo "{split: $1, source_path: $2.$from, target_path: $2.$to${3:+, $3}}"; }
data() { echo "data={source: files, source_language: $from, target_language: $to, test_share: 0.0, corpora: [$1]}"; }

from=$target to=$source
tfm train --config "$config" "$@" --set name=back-reverse \
    --set "$(data "$(corpus train "$train"), $(corpus validation "$dev")")"
tfm translate --run back-reverse --input "$mono.$target" --output "$mono.$source"

# The model reads <BT> before each source that a model wrote, so it can tell them from those of people.
from=$source to=$target
tfm train --config "$config" "$@" --set name=back-forward \
    --set "$(data "$(corpus train "$train" "weight: 2.0"), $(corpus train "$mono" "tag: <BT>"), $(corpus validation "$dev")")"
tfm validate --run back-forward --source "$dev.$source" --reference "$dev.$target"
