#!/usr/bin/env bash
# What `make rehearsal` does after the set-up: hosts, rollout, baseline, first report.
set -euo pipefail
cd "$(dirname "$0")/.."
instance=$ACCEL_REHEARSAL_INSTANCE
play="ansible-playbook --inventory inventories/rehearsal"
started=$SECONDS

# The name of the run is chosen here, so that the report that is shown is that of this run.
run=$(date --utc +%Y%m%dT%H%M%SZ)-$$

$play accel.cluster.rehearsal.create
$play accel.cluster.site
$play accel.cluster.accept_baseline -e "accept_reason='First baseline of the rehearsal'"
verdict=0
$play accel.cluster.verify -e "acceptance_run_id=$run" || verdict=$?
cat <<END

The rehearsal took $((SECONDS - started)) s. Report: $PWD/sites/$instance/reports/$run/report.html

  log in          ssh -F .cache/$instance/ssh/config gpu-01
  run it again    make rehearsal
  judge again     make verify
  break a card    make inject HOST=gpu-01 FAULT=card_lost SLOT=SXM5      (heal: make heal HOST=gpu-01)
  accept cards    make accept REASON='SXM5 replaced, ticket 4711'
  remove hosts    make destroy
END
exit "$verdict"
