# Thin targets: each is one or two lines that can be typed by hand. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:
.PHONY: help rehearsal hosts verify accept inject heal destroy test test-full lint unit browser sanity molecule drill bench fuzz clean \
	setup setup-test

export ACCEL_REHEARSAL_INSTANCE ?= rehearsal
# Handed over as it is: no shell reads the quotes in it.
export REASON
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# Ansible starts in no locale but a UTF-8 one; a script or a bare server has another.
export LC_ALL := C.UTF-8
# Nothing is written to the user's home; sockets need a short path.
export ANSIBLE_HOME := $(CURDIR)/.cache/ansible
export ANSIBLE_SSH_CONTROL_PATH_DIR := /run/accel-ssh
PLAY := ansible-playbook --inventory inventories/rehearsal
# What a target needs to be told, and the hosts that it works on.
need = $(if $(value $(1)),,$(error $(1) is missing: make $@ $(2)))
HOSTS_EXIST := test -e .cache/$(ACCEL_REHEARSAL_INSTANCE)/hosts.json || { echo "there are no test hosts: make rehearsal" >&2; exit 1; }

help:  ## list the targets
	@grep -hE '^[a-z -]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

setup:
	@tools/setup.sh rehearsal

setup-test:
	@tools/setup.sh test

rehearsal: setup  ## test hosts, rollout, baseline, first report
	@tools/rehearsal.sh

hosts: setup  ## make or start the test hosts, nothing more
	@$(PLAY) accel.cluster.rehearsal.create --tags hosts

verify: setup  ## judge the rehearsal hosts and write a report
	@$(HOSTS_EXIST)
	$(PLAY) accel.cluster.verify

accept: setup  ## REASON='SXM5 replaced, ticket 4711': accept the cards where they are
	@$(HOSTS_EXIST)
	$(PLAY) accel.cluster.accept_baseline $(if $(value REASON),-e "accept_reason={{ lookup('ansible.builtin.env', 'REASON') }}")

inject: setup  ## HOST=gpu-01 FAULT=card_lost SLOT=SXM5 [SLOT_B=...]: break something
	@$(call need,HOST,HOST=gpu-01 FAULT=card_lost SLOT=SXM5)$(call need,FAULT,HOST=gpu-01 FAULT=card_lost SLOT=SXM5)
	$(HOSTS_EXIST)
	$(PLAY) accel.cluster.rehearsal.inject -e inject_host=$(HOST) -e inject_fault=$(FAULT) $(if $(SLOT),-e inject_slot=$(SLOT)) $(if $(SLOT_B),-e inject_slot_b=$(SLOT_B))

heal: setup  ## HOST=gpu-01: take every fault out again
	@$(call need,HOST,HOST=gpu-01)
	$(HOSTS_EXIST)
	$(PLAY) accel.cluster.rehearsal.inject -e inject_host=$(HOST) -e inject_state=absent

destroy:  ## remove the test hosts; caches stay
	@/usr/bin/python3 tools/rehearsal_hosts.py destroy >/dev/null
	echo "The test hosts are gone."

test: setup-test  ## all that CI runs
	@python tools/run_tests.py core

test-full: setup-test  ## everything: also other versions, installed forms, rehearsals from nothing
	@python tools/run_tests.py full

fuzz: setup-test  ## 200,000 damaged answers for every parser (ONLY="ascend. pci", COUNT=...)
	@python tests/fuzz/fuzz.py $(if $(COUNT),--count $(COUNT)) $(ONLY)

lint unit browser sanity molecule: setup-test  ## one part of the tests
	@python tools/run_tests.py $@

drill: setup-test  ## hosts, rollout, then every kind of fault
	@python tools/run_tests.py drill

bench: setup-test  ## what the collection costs, on the rehearsal hosts
	@python tests/bench/bench.py

clean:  ## remove hosts, caches and the virtual environment
	@/usr/bin/python3 tools/rehearsal_hosts.py clean
	rm -rf .venv
