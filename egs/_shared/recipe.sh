# shellcheck shell=sh
# Every recipe's run.sh: reads the flags, checks them all (checks.sh), runs the stages (stages.sh;
# training on several machines: machines.sh; stage 4 and its flags: evaluation.sh). tts.sh and
# vocoder.sh hold what only recipes of that kind have; the folder of the recipe, egs/<kind>/<name>,
# selects one. POSIX sh only. Values are data: they are quoted everywhere and never evaluated.

readonly FIRST_STAGE=0 LAST_STAGE=4

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 2
}

# Runs the stages that the flags ask for.
# $1: folder of the recipe; the rest: its flags.
run_recipe() {
    recipe_dir=$1
    shift
    caller_dir=$(pwd)
    root=$(CDPATH='' cd -- "$recipe_dir/../../.." && pwd)
    stage='' config=$recipe_dir/exp_config.json name='' resume='' restart='' init_from=''
    synthetic='' profile='' seed='' num_workers='' from_acoustic='' infer_expt_dir='' infer_mode='' infer_dataset=''
    infer_testing_set='' overwrite='' vocoder_dir='' resample=''
    read_parts
    gpu=${CUDA_VISIBLE_DEVICES-0}

    # sh has no arrays: the flags that can be repeated are left in "$@" after the loop.
    unread=$# several=''
    while [ "$unread" -gt 0 ]; do
        flag=$1
        shift
        unread=$((unread - 1))
        case $flag in
            -h | --help) show_usage && exit 0 ;;
            --*=*)
                value=${flag#*=}
                flag=${flag%%=*}
                several=''
                ! (read_switch "$flag") || fail "$flag takes no value"
                ;;
            -*)
                several=$flag
                if read_switch "$flag"; then continue; fi
                is_flag "$flag" || unknown "$flag"
                [ "$unread" -gt 0 ] || fail "$flag needs a value"
                value=$1
                shift
                unread=$((unread - 1))
                # A forgotten value must not swallow the next flag; only a text may look like one.
                case $value in
                    --*) [ "$flag" = --infer_text ] || fail "$flag needs a value, found the flag $value" ;;
                esac
                ;;
            *)
                # One flag takes all words up to the next flag.
                [ "$several" = --infer_output_dir ] ||
                    fail "unexpected argument '$flag'; quote a value that holds spaces"
                value=$flag
                flag=$several
                ;;
        esac
        case $flag in
            --set)
                case $value in
                    ?*=*) set -- "$@" "--set=$value" ;;
                    *) fail "--set '$value': expected key.path=value" ;;
                esac
                ;;
            --infer_output_dir)
                [ -n "$value" ] || fail "$flag needs a value"
                set -- "$@" "$flag=$value"
                ;;
            *) read_flag "$flag" "$value" || unknown "$flag" ;;
        esac
    done
    read_stages
    run_stages "$@"
}

# "$@": every `--set=KEY=VALUE` and every `--infer_output_dir=DIR`.
run_stages() {
    n_outputs=0
    for argument do
        shift
        case $argument in
            --infer_output_dir=*)
                n_outputs=$((n_outputs + 1))
                argument=--infer_output_dir=$(place_output "${argument#*=}")
                ;;
        esac
        set -- "$@" "$argument"
    done
    check_values "$@"
    prepare_environment
    number=$first
    while [ "$number" -le "$last" ]; do
        case $number in
            0) with_overrides stage_0 "$@" ;;
            1) with_overrides stage_1 "$@" ;;
            2) with_overrides stage_2 "$@" ;;
            3) with_model stage_3 "$@" ;;
            4) with_model stage_4 "$@" ;;
        esac
        number=$((number + 1))
    done
    log_next "$@"
}

# $1: a folder of wavs; stage 3 makes it, stage 4 alone needs an existing one.
place_output() {
    if runs_stage 3; then from_here "$1"; else locate "$1"; fi
}

# Reads the functions of this kind of recipe and those of all recipes.
read_parts() {
    kind=${recipe_dir%/*}
    kind=${kind##*/}
    case $kind in
        tts)
            # shellcheck source=egs/_shared/tts.sh
            . "$root/egs/_shared/tts.sh"
            ;;
        vocoder)
            # shellcheck source=egs/_shared/vocoder.sh
            . "$root/egs/_shared/vocoder.sh"
            ;;
        *) fail "$recipe_dir: expected a recipe in egs/tts or egs/vocoder" ;;
    esac
    # shellcheck source=egs/_shared/checks.sh
    . "$root/egs/_shared/checks.sh"
    # shellcheck source=egs/_shared/stages.sh
    . "$root/egs/_shared/stages.sh"
    # shellcheck source=egs/_shared/machines.sh
    . "$root/egs/_shared/machines.sh"
    # shellcheck source=egs/_shared/evaluation.sh
    . "$root/egs/_shared/evaluation.sh"
}

# Lines that start with the name of a kind and a bar are for recipes of that kind.
show_usage() {
    sed -e "s/^$kind|//" -e '/^[a-z]*|/d' "$root/egs/_shared/usage.txt"
}

# $1: a flag that this recipe does not have.
unknown() {
    refuse_foreign "$1"
    near=$(show_usage | sed -n 's/^ *\(-[a-z], \)*\(--[a-z_]*\) .*/\2/p' | nearest "$1")
    fail "unknown flag $1$near (--help lists the flags)"
}

# $1: an unknown name; standard input: the known ones, one a line. Prints "; did you mean ...?" with
# the one that shares the longest subsequence with it, if that is most of both.
nearest() {
    NAME=$1 awk '
        function shared(a, b,    i, j, n) {
            for (i = 1; i <= length(a); i++)
                for (j = 1; j <= length(b); j++)
                    if (substr(a, i, 1) == substr(b, j, 1)) n[i, j] = n[i - 1, j - 1] + 1
                    else n[i, j] = n[i - 1, j] > n[i, j - 1] ? n[i - 1, j] : n[i, j - 1]
            return n[length(a), length(b)] + 0
        }
        BEGIN { given = ENVIRON["NAME"]; sub(/^-*/, "", given); best = 0.6 }
        {
            known = $0
            sub(/^-*/, "", known)
            alike = 2 * shared(given, known) / (length(given) + length(known))
            if (alike > best) { best = alike; name = $0 }
        }
        END { if (name) printf "; did you mean %s?", name }'
}

# $1: a flag without a value. Fails for any other.
read_switch() {
    case $1 in
        --resume) resume=1 ;;
        --restart) restart=1 ;;
        --synthetic) synthetic=1 ;;
        --profile) profile=1 ;;
        --overwrite) overwrite=1 ;;
        *) read_kind_switch "$1" ;;
    esac
}

is_flag() {
    case $1 in
        --set | --infer_output_dir) ;;
        *) (read_flag "$1" '') ;;
    esac
}

# $1: flag; $2: its value. Fails for a flag that does not exist.
read_flag() {
    case $1 in
        -s | --stage) stage=$2 ;;
        -c | --config) config=$(locate "$2") ;;
        -n | --name) name=$2 ;;
        --gpu) gpu=$2 ;;
        --num_workers) num_workers=$2 ;;
        --init_from) init_from=$(locate "$2") ;;
        --seed) seed=$2 ;;
        --infer_expt_dir) infer_expt_dir=$(locate "$2") ;;
        --infer_mode) infer_mode=$2 ;;
        --infer_dataset) infer_dataset=$2 ;;
        --infer_testing_set) infer_testing_set=$2 ;;
        *) read_evaluation_flag "$1" "$2" || read_machine_flag "$1" "$2" || read_kind_flag "$1" "$2" ;;
    esac
}

# Makes a path absolute.
from_here() {
    case $1 in
        \~/*) printf '%s' "$HOME${1#?}" ;; # --flag=~/a, which not every shell expands
        '' | /* | '~'*) printf '%s' "$1" ;;
        *) printf '%s' "$caller_dir/$1" ;;
    esac
}

# Makes the path of an existing file or folder absolute; leaves what may be a name on the Hub.
locate() {
    case $1 in
        '' | /* | '~'* | ./* | ../* | . | ..) from_here "$1" ;;
        *)
            if [ -e "$caller_dir/$1" ]; then
                printf '%s' "$caller_dir/$1"
            elif [ ! -e "$root/$1" ] && [ -e "$caller_dir/${1%%/*}" ]; then
                # Missing, but its first folder exists here: a local path, not a name on the Hub.
                printf '%s' "$caller_dir/$1"
            else
                printf '%s' "$1" # Python runs at the root
            fi
            ;;
    esac
}

# Chooses the Python and the devices.
prepare_environment() {
    python=${PYTHON-}
    case $python in
        '')
            python=$root/.venv/bin/python
            [ -x "$python" ] || python=python3
            ;;
        /*) ;;
        */*) python=$caller_dir/$python ;; # the stages run at the root
    esac
    command -v "$python" >/dev/null || fail "no Python at $python; run make venv, or set PYTHON"
    # Finds them without importing them: importing torch takes seconds.
    "$python" -c 'import importlib.util as u; assert all(map(u.find_spec, ("torch", "json5")))' \
        >/dev/null 2>&1 ||
        fail "$(command -v "$python") lacks torch or json5; run make venv, or set PYTHON"
    export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
    # Text on the command line is read as UTF-8 in every locale.
    export PYTHONUTF8=1
    export CUDA_VISIBLE_DEVICES="$gpu"
    # Spinning threads block a core that another process needs: up to 3 times slower.
    export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-PASSIVE}"
    cd -- "$root" || fail "cannot enter $root"
    if runs_stage 2; then
        count_gpus
        prepare_machines
    fi
}

# Sets $processes: the number of GPUs in --gpu, 0 for the CPU.
count_gpus() {
    processes=0
    [ -n "$gpu" ] || return 0
    processes=$("$python" -c 'import torch; print(torch.cuda.device_count())' 2>/dev/null) ||
        fail "$python cannot import torch; run make venv, or set PYTHON"
    commas=$(printf %s "$gpu" | tr -cd ,)
    [ "$processes" -eq 0 ] || [ "$processes" -eq $((${#commas} + 1)) ] ||
        fail "--gpu $gpu: this machine has only $processes of these"
}
