#!/usr/bin/env bash
# Sequence-level distillation: a small student learns the translations of a large teacher.
#
#   bash examples/distillation.sh TEACHER CONFIG TRAIN DEV SOURCE TARGET [--set ...]
#
# TEACHER is a trained run. CONFIG has the model of the student. TRAIN and DEV are plain text without the ending:
# TRAIN.en and TRAIN.it, if SOURCE is en and TARGET is it. Further options go to the training of the student.
# It writes TRAIN.teacher.it, makes the run student, and prints the scores of both.
# Source: Kim and Rush 2016, "Sequence-Level Knowledge Distillation".
set -euo pipefail
(($# >= 6)) || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
teacher=$1 config=$2 train=$3 dev=$4 source=$5 target=$6
shift 6

tfm translate --run "$teacher" --input "$train.$source" --output "$train.teacher.$target" \
    --from "$source" --to "$target" --set decoding.beam_size=5
taught="{split: train, source_path: $train.$source, target_path: $train.teacher.$target}"
dev_pairs="{split: validation, source_path: $dev.$source, target_path: $dev.$target}"
tfm train --config "$config" "$@" --set name=student \
    --set "data={source: files, source_language: $source, target_language: $target, test_share: 0.0, corpora: [$taught, $dev_pairs]}"

for one in "$teacher" student; do
    echo "== $one"
    tfm validate --run "$one" --source "$dev.$source" --reference "$dev.$target" --from "$source" --to "$target"
done
