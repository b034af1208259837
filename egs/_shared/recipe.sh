# shellcheck shell=sh
# What every recipe's run.sh does: read the flags, check them all, run the stages (stages.sh). What
# only recipes of one kind have stands in tts.sh and vocoder.sh: the folder of the recipe,
# egs/<kind>/<name>, says which it is. POSIX sh only. Values are data: they are quoted everywhere and
# never evaluated.

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
    stage='' config=$recipe_dir/exp_config.json name='' resume='' restart='' init_from='' seed=''
    num_workers='' from_acoustic='' infer_expt_dir='' infer_output_dir='' infer_mode=''
    infer_dataset='' infer_testing_set='' recordings='' metrics=''
    read_kind
    gpu=${CUDA_VISIBLE_DEVICES-0}

    # There are no arrays in sh: the overrides are what is left in "$@" after the loop.
    unread=$#
    while [ "$unread" -gt 0 ]; do
        flag=$1
        shift
        unread=$((unread - 1))
        case $flag in
            -h | --help) show_usage && exit 0 ;;
            --*=*)
                value=${flag#*=}
                flag=${flag%%=*}
                ! (read_switch "$flag") || fail "$flag takes no value"
                ;;
            -*)
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
            *) fail "unexpected argument '$flag'; quote a value that holds spaces" ;;
        esac
        case $flag in
            --set)
                case $value in
                    ?*=*) set -- "$@" "--set=$value" ;;
                    *) fail "--set '$value': expected key.path=value" ;;
                esac
                ;;
            *) read_flag "$flag" "$value" || unknown "$flag" ;;
        esac
    done

    read_stages
    check_values
    prepare_environment
    number=$first
    while [ "$number" -le "$last" ]; do
        case $number in
            0) stage_0 "$@" ;;
            1) stage_1 "$@" ;;
            2) stage_2 "$@" ;;
            3) with_model stage_3 "$@" ;;
            4) with_model stage_4 "$@" ;;
        esac
        number=$((number + 1))
    done
}

# Reads the part for this kind of recipe, and the stages.
read_kind() {
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
    # shellcheck source=egs/_shared/stages.sh
    . "$root/egs/_shared/stages.sh"
}

# Lines that start with the name of a kind and a bar are for recipes of that kind.
show_usage() {
    sed -e "s/^$kind|//" -e '/^[a-z]*|/d' "$root/egs/_shared/usage.txt"
}

# $1: a flag that this recipe does not have.
unknown() {
    refuse_foreign "$1"
    fail "unknown flag $1 (--help lists the flags)"
}

# $1: a flag without a value. Fails for any other.
read_switch() {
    case $1 in
        --resume) resume=1 ;;
        --restart) restart=1 ;;
        *) read_kind_switch "$1" ;;
    esac
}

is_flag() {
    [ "$1" = --set ] || (read_flag "$1" '')
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
        --infer_output_dir) infer_output_dir=$(from_here "$2") ;;
        --infer_mode) infer_mode=$2 ;;
        --infer_dataset) infer_dataset=$2 ;;
        --infer_testing_set) infer_testing_set=$2 ;;
        --recordings) recordings=$(locate "$2") ;;
        --metrics) metrics=$2 ;;
        *) read_kind_flag "$1" "$2" ;;
    esac
}

# Makes a path absolute.
from_here() {
    case $1 in
        '' | /* | '~'*) printf '%s' "$1" ;;
        *) printf '%s' "$caller_dir/$1" ;;
    esac
}

# Makes the path of something that exists absolute, and leaves what may be a name on the Hub.
locate() {
    case $1 in
        '' | /* | '~'* | ./* | ../* | . | ..) from_here "$1" ;;
        *)
            if [ -e "$caller_dir/$1" ]; then
                printf '%s' "$caller_dir/$1"
            elif [ ! -e "$root/$1" ] && [ -e "$caller_dir/${1%%/*}" ]; then
                # Nothing there, but in a folder that exists here: no name on the Hub.
                printf '%s' "$caller_dir/$1"
            else
                printf '%s' "$1" # Python runs at the root
            fi
            ;;
    esac
}

# Sets $first and $last from $stage.
read_stages() {
    case $stage in
        '') fail "--stage is required: a stage from $FIRST_STAGE to $LAST_STAGE, a range as 1-3, or all" ;;
        all) first=$FIRST_STAGE last=$LAST_STAGE ;;
        [0-9]) first=$stage last=$stage ;;
        [0-9]-[0-9]) first=${stage%-*} last=${stage#*-} ;;
        *) fail "--stage '$stage': expected a stage from $FIRST_STAGE to $LAST_STAGE, a range as 1-3, or all" ;;
    esac
    [ "$first" -le "$last" ] || fail "--stage $stage: the range runs backwards"
    [ "$last" -le "$LAST_STAGE" ] || fail "--stage $stage: the last stage is $LAST_STAGE"
}

runs_stage() {
    [ "$first" -le "$1" ] && [ "$1" -le "$last" ]
}

# Everything that can be wrong with the flags is said before any work.
check_values() {
    # The recipe's own files can be named from anywhere.
    if ! in_root "$config" && [ -f "$recipe_dir/$config" ]; then config=$recipe_dir/$config; fi
    in_root "$config" || fail "--config $config: no such file"
    check_gpu
    check_number --num_workers "$num_workers" '*[!0-9]*' "a whole number from 1"
    check_kind_values
    case $seed in *[!0-9]*) fail "--seed '$seed': expected a whole number" ;; esac
    if runs_stage 2; then check_training; fi
    if [ -n "$name" ]; then check_name; fi
    if runs_stage 3; then check_inference; fi
    if runs_stage 4; then check_evaluation; fi
}

# Is there such a file? Python runs at the root, where relative paths start.
in_root() {
    case $1 in
        /*) [ -f "$1" ] ;;
        *) [ -f "$root/$1" ] ;;
    esac
}

# Is there such a file or folder?
exists() (
    cd -- "$root" && [ -e "$1" ]
)

check_gpu() {
    case ,$gpu, in
        ,,) ;;
        *,,* | *[![:alnum:],-]*) fail "--gpu '$gpu': expected numbers and commas, as 0 or 0,1,2,3" ;;
    esac
}

# $1: flag; $2: value; $3: pattern of what it cannot hold; $4: what is expected.
check_number() {
    # shellcheck disable=SC2254  # the pattern is meant as one
    case $2 in
        '') ;;
        $3 | *.*.*) fail "$1 '$2': expected $4" ;;
        *[1-9]*) ;;
        *) fail "$1 '$2': expected $4" ;;
    esac
}

check_name() {
    case $name in
        [!_[:alnum:]]* | *[!_.[:alnum:]-]*)
            fail "--name '$name': expected letters, digits, dots, dashes and underscores"
            ;;
    esac
    [ "${#name}" -le 100 ] || fail "--name: expected at most 100 characters"
}

check_training() {
    [ -n "$name" ] || fail "stage 2 needs --name"
    [ -z "$resume" ] || [ -z "$restart$init_from" ] ||
        fail "--resume goes on: --restart and --init_from exclude it"
}

check_inference() {
    [ -n "$infer_expt_dir$name" ] || fail "stage 3 needs --infer_expt_dir, or --name"
    case $infer_mode in
        single)
            [ -z "$infer_dataset" ] || fail "--infer_dataset goes with --infer_mode batch"
            [ -z "$infer_testing_set" ] || fail "--infer_testing_set goes with --infer_mode batch"
            check_single
            ;;
        batch) check_batch ;;
        '') fail "stage 3 needs --infer_mode: single or batch" ;;
        *) fail "--infer_mode '$infer_mode': expected single or batch" ;;
    esac
}

check_batch() {
    check_no_single
    [ -n "$infer_dataset" ] || fail "--infer_mode batch needs --infer_dataset"
    case $infer_testing_set in
        train | test | golden_test) ;;
        '') fail "--infer_mode batch needs --infer_testing_set: train, test or golden_test" ;;
        *) fail "--infer_testing_set '$infer_testing_set': expected train, test or golden_test" ;;
    esac
}

check_evaluation() {
    [ -n "$infer_expt_dir$name$infer_output_dir" ] ||
        fail "stage 4 needs --infer_expt_dir, --name or --infer_output_dir"
    case $infer_mode in
        '' | single | batch) ;;
        *) fail "--infer_mode '$infer_mode': expected single or batch" ;;
    esac
    [ -z "$recordings" ] || exists "$recordings" || fail "--recordings $recordings: no such folder"
    [ -n "$recordings" ] || check_recorded
    check_metrics
}

# A metric is a file.
check_metrics() {
    names=${metrics:+$metrics,}
    while [ -n "$names" ]; do
        metric=${names%%,*}
        names=${names#*,}
        case $metric in
            all) ;;
            '' | [!a-z]* | *[!a-z0-9_]*)
                fail "--metrics '$metrics': expected names and commas, as in mel_l1,wer"
                ;;
            *)
                [ -f "$root/processors/metrics/$metric.py" ] ||
                    fail "--metrics $metric: no such metric; there are: all$(metric_names)"
                ;;
        esac
    done
}

metric_names() {
    for metric in "$root"/processors/metrics/[a-z]*.py; do
        metric=${metric##*/}
        printf ' %s' "${metric%.py}"
    done
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
    export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
    # The text on the command line is UTF-8, whatever the locale says.
    export PYTHONUTF8=1
    export CUDA_VISIBLE_DEVICES="$gpu"
    # Threads that wait by spinning take the core from a busy neighbour: 3 times slower beside one.
    export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-PASSIVE}"
    cd -- "$root" || fail "cannot enter $root"
    if runs_stage 2; then count_gpus; fi
}

# Sets $processes: one for each GPU of --gpu, 0 for the CPU.
count_gpus() {
    processes=0
    [ -n "$gpu" ] || return 0
    processes=$("$python" -c 'import torch; print(torch.cuda.device_count())' 2>/dev/null) ||
        fail "$python cannot import torch; run make venv, or set PYTHON"
    commas=$(printf %s "$gpu" | tr -cd ,)
    [ "$processes" -eq 0 ] || [ "$processes" -eq $((${#commas} + 1)) ] ||
        fail "--gpu $gpu: this machine has only $processes of these"
}
