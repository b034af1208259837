#!/bin/sh
# Matcha, from a corpus to speech. `sh run.sh --help` lists the stages and the flags.
set -eu
recipe_dir=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=egs/_shared/python.sh
. "$recipe_dir/../../_shared/python.sh"
run_recipe "$recipe_dir" "$@"
