#!/usr/bin/env bash
# What `make rehearsal` does after the set-up: hosts, rollout, baseline, first report.
set -euo pipefail
cd "$(dirname "$0")/.."
instance=$ACCEL_REHEARSAL_INSTANCE
play="ansible-playbook --inventory inventories/rehearsal"
started=$SECONDS

$play accel.cluster.rehearsal.create
$play accel.cluster.site
$play accel.cluster.accept_baseline -e "accept_reason='First baseline of the rehearsal'"
verdict=0
$play accel.cluster.verify || verdict=$?

report=$(find "sites/$instance/reports" -mindepth 2 -name report.html -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-)
cat <<END

The rehearsal took $((SECONDS - started)) s. Report: $PWD/$report

  log in          ssh -F .cache/$instance/ssh/config gpu-01
  run it again    make rehearsal
  judge again     make verify
  break a card    make inject HOST=gpu-01 FAULT=card_lost SLOT=SXM5      (heal: make heal HOST=gpu-01)
  remove hosts    make destroy
END
exit "$verdict"
