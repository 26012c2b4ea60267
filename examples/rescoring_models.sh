#!/usr/bin/env bash
# Two models for rescoring: one of the other direction, and one that writes from right to left.
#
#   bash examples/rescoring_models.sh CONFIG TRAIN DEV SOURCE TARGET [--set ...]
#
# CONFIG has the model and the training; the section data is replaced. TRAIN and DEV are plain text without the ending:
# TRAIN.en and TRAIN.it, if SOURCE is en and TARGET is it. Further options go to both trainings.
# The script makes the runs rescore-channel, which translates from TARGET to SOURCE, and rescore-right-to-left, which
# writes a translation from its last word to its first. decoding.rescore uses them (docs/recipes.md).
set -euo pipefail
(($# >= 5)) || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
config=$1 train=$2 dev=$3 source=$4 target=$5
shift 5

corpus() { echo "{split: $1, source_path: $2, target_path: $3}"; }
data() { echo "data={source: files, source_language: $1, target_language: $2, test_share: 0.0, corpora: [$3]}"; }

for text in "$train" "$dev"; do
    awk '{ for (i = NF; i > 0; i--) printf "%s%s", $i, (i > 1 ? " " : ""); print "" }' "$text.$target" \
        > "$text.reversed.$target"
done
tfm train --config "$config" "$@" --set name=rescore-channel --set "$(data "$target" "$source" \
    "$(corpus train "$train.$target" "$train.$source"), $(corpus validation "$dev.$target" "$dev.$source")")"
tfm train --config "$config" "$@" --set name=rescore-right-to-left --set "$(data "$source" "$target" \
    "$(corpus train "$train.$source" "$train.reversed.$target"), $(corpus validation "$dev.$source" "$dev.reversed.$target")")"
