#!/usr/bin/env bash
# Fine-tune a run on another domain, once on the new corpus alone and once with a share of the old one.
#
#   bash examples/fine_tuning.sh RUN OLD NEW DEV SOURCE TARGET [--set ...]
#
# RUN is a trained run. OLD, NEW and DEV are plain text without the ending: OLD.en and OLD.it, if SOURCE is en and
# TARGET is it. Further options go to both trainings, such as --set training.max_steps=2000.
# It makes the runs RUN-new and RUN-mixed, and prints the scores of all three on DEV.
set -euo pipefail
(($# >= 6)) || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
run=$1 old=$2 new=$3 dev=$4 source=$5 target=$6
shift 6

corpus() { echo "{split: $1, source_path: $2.$source, target_path: $2.$target${3:+, weight: $3}}"; }
data() { echo "data={source: files, source_language: $source, target_language: $target, test_share: 0.0, corpora: [$1]}"; }
# A smaller training.learning_rate than that of the old run keeps more of what the model knows.
common=(--set "training.init_from=$run" --set training.warmup_steps=100 "$@")

tfm train --config "runs/$run/config.yaml" --set "name=$run-new" "${common[@]}" \
    --set "$(data "$(corpus train "$new"), $(corpus validation "$dev")")"
# In each epoch the model reads all new pairs, and a random fifth of the old ones.
tfm train --config "runs/$run/config.yaml" --set "name=$run-mixed" "${common[@]}" \
    --set "$(data "$(corpus train "$new"), $(corpus train "$old" 0.2), $(corpus validation "$dev")")"

for one in "$run" "$run-new" "$run-mixed"; do
    echo "== $one"
    tfm validate --run "$one" --source "$dev.$source" --reference "$dev.$target"
done
