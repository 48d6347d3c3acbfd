#!/usr/bin/env bash
# The same gate on any CI, or by hand: the exit code decides. 0 pass, 1 the gate failed, 2 cannot judge, 3 no data,
# 4 the training command failed.
set -euo pipefail

baseline=(trainscope_baseline.arrow)
[[ -f ${baseline[0]} ]] && set -- --baseline "${baseline[0]}" "$@"
exec trainscope ci --out trainscope_ci "$@" -- python train.py
