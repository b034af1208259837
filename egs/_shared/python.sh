# shellcheck shell=sh
# Finds Python for run.sh: $PYTHON, or that of .venv, or python3. bins/recipe.py does the rest.

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 2
}

# Runs a recipe at the root of the repository, in place of this shell: signals arrive there.
# $1: folder of the recipe; the rest: its flags.
run_recipe() {
    recipe_dir=$1
    shift
    RECIPE_CALLER_DIR=$(pwd)
    root=$(CDPATH='' cd -- "$recipe_dir/../../.." && pwd)
    python=${PYTHON-}
    case $python in
        '')
            python=$root/.venv/bin/python
            [ -x "$python" ] || python=python3
            ;;
        /*) ;;
        */*) python=$RECIPE_CALLER_DIR/$python ;;
    esac
    command -v "$python" >/dev/null || fail "no Python at $python; run make venv, or set PYTHON"
    # Text on the command line is UTF-8 in every locale.
    export RECIPE_CALLER_DIR PYTHONUTF8=1
    cd -- "$root" || fail "cannot enter $root"
    exec "$python" -m bins.recipe "${recipe_dir#"$root/egs/"}" "$@"
}
