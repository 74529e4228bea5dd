#!/usr/bin/env bash
# Brings a Debian machine from its base system to where `make rehearsal` or `make test` can run.
#   tools/setup.sh rehearsal|test
# Touches packages and the checkout's .venv and .cache, nothing else. Done before: takes half a second.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=$1

fail() {
    echo "set-up: $*" >&2
    exit 1
}

# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || fail "this needs a Debian machine (12 or newer); this one is ${PRETTY_NAME:-unknown}"
[ "$(id -u)" = 0 ] || fail "this needs root: it installs packages and starts containers with systemd; use sudo make ..."

mkdir -p .cache/logs
exec 9>.cache/setup.lock
flock 9

# 1. Packages. Asked of dpkg each time: a note of an earlier run could not know what was removed since.
lists=(tools/packages-rehearsal.txt)
requirements=(-r requirements.txt)
if [ "$purpose" = test ]; then
    lists+=(tools/packages-test.txt)
    requirements+=(-r requirements-test.txt)
fi
missing=$(sort -u "${lists[@]}" | comm -23 - <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u))
# The root file system is made from the package lists too; a new machine may have none.
if [ -n "$missing" ] || ! apt-get indextargets --format '$(ORIGIN)' 'Created-By: Packages' | grep -qx Debian; then
    echo "set-up: installing packages:" $missing
    export DEBIAN_FRONTEND=noninteractive
    {
        timeout 600 apt-get update -q
        # shellcheck disable=SC2086
        [ -z "$missing" ] || timeout 1800 apt-get install -qy --no-install-recommends -o DPkg::Lock::Timeout=300 $missing
    } >.cache/logs/setup-packages.log 2>&1 9>&- || {
        tail -n 20 .cache/logs/setup-packages.log >&2
        fail "packages could not be installed; all of it is in .cache/logs/setup-packages.log"
    }
fi

# 2. Python packages, exactly those of the lock file. The stamp's name is the content it was made from.
stamp=.venv/.$purpose-$(cat requirements.txt requirements-test.txt requirements-lock.txt /usr/bin/python3 | sha256sum | cut -c 1-16)
if [ ! -e "$stamp" ]; then
    echo "set-up: installing Python packages into .venv"
    {
        # Debian's own Python: another one that comes first on the path may be too old, or gone tomorrow.
        [ -x .venv/bin/pip ] || timeout 120 /usr/bin/python3 -m venv --clear .venv
        timeout 1800 .venv/bin/pip install --disable-pip-version-check "${requirements[@]}" -c requirements-lock.txt
    } >.cache/logs/setup-python.log 2>&1 9>&- || {
        tail -n 20 .cache/logs/setup-python.log >&2
        fail "Python packages could not be installed; all of it is in .cache/logs/setup-python.log"
    }
    touch "$stamp"
fi

# 3. Ansible finds the checkout as accel.cluster (ansible.cfg names this path).
mkdir -p .cache/collections/ansible_collections/accel
# Somebody installed the collection while this configuration was in force: what is tested is the checkout.
[ -L .cache/collections/ansible_collections/accel/cluster ] || rm -rf .cache/collections/ansible_collections/accel/cluster
ln -sfn ../../../.. .cache/collections/ansible_collections/accel/cluster
