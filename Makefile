# Thin targets: each is one or two lines that can be typed by hand. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:
.PHONY: help rehearsal hosts verify inject heal destroy test test-full lint unit browser sanity molecule drill bench clean \
	setup setup-test

export ACCEL_REHEARSAL_INSTANCE ?= rehearsal
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
PLAY := ansible-playbook --inventory inventories/rehearsal

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

setup:
	@tools/setup.sh rehearsal

setup-test:
	@tools/setup.sh test

rehearsal: setup  ## test hosts, rollout, baseline, first report
	@tools/rehearsal.sh

hosts: setup  ## make or start the test hosts, nothing more
	@$(PLAY) accel.cluster.rehearsal.create --tags hosts

verify: setup  ## judge the rehearsal hosts and write a report
	@$(PLAY) accel.cluster.verify

inject: setup  ## HOST=gpu-01 FAULT=card_lost SLOT=SXM5 [SLOT_B=...]: break something
	@$(PLAY) accel.cluster.rehearsal.inject -e inject_host=$(HOST) -e inject_fault=$(FAULT) $(if $(SLOT),-e inject_slot=$(SLOT)) $(if $(SLOT_B),-e inject_slot_b=$(SLOT_B))

heal: setup  ## HOST=gpu-01: take every fault out again
	@$(PLAY) accel.cluster.rehearsal.inject -e inject_host=$(HOST) -e inject_state=absent

destroy:  ## remove the test hosts; caches stay
	@tools/rehearsal_hosts.py destroy
