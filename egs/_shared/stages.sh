# shellcheck shell=sh disable=SC2154  # recipe.sh sets the other variables
# The command of each stage, run after recipe.sh has read and checked the flags. --task: the kind of
# recipe refuses a configuration of the other kind.

# $1: number and name of the stage, for the log.
log_stage() {
    printf '== stage %s\n' "$1" >&2
}

# Calls a function ($1) with the --set overrides only.
with_overrides() {
    stage_function=$1
    shift
    for argument do
        shift
        case $argument in --set=*) set -- "$@" "$argument" ;; esac
    done
    "$stage_function" "$@"
}

# The stages; "$@" are the --set overrides, and for the last two --infer_output_dir. `--flag=value`
# keeps a value that starts with a dash.
stage_0() {
    log_stage "0: corpus"
    "$python" -m bins.fetch "--config=$config" "$@"
}

stage_1() {
    log_stage "1: data"
    "$python" -m bins.preprocess "--config=$config" "--task=$kind" \
        ${num_workers:+"--num_workers=$num_workers"} \
        ${from_acoustic:+"--from_acoustic=$from_acoustic"} "$@"
}

stage_2() {
    log_stage "2: training"
    set -- -m bins.train "--config=$config" "--task=$kind" "--name=$name" \
        ${resume:+--resume} ${restart:+--restart} ${init_from:+"--init_from=$init_from"} \
        ${synthetic:+--synthetic} ${profile:+--profile} ${seed:+"--seed=$seed"} "$@"
    if [ "$processes" -eq 0 ]; then
        OMP_NUM_THREADS=$(cpu_threads)
        export OMP_NUM_THREADS ACCELERATE_USE_CPU=true
    fi
    launch_training "$@"
}

# Runs a command that saves its work when it is stopped, also by a terminal that closes: forwards
# the signal and waits for the end.
supervise() {
    child='' code=127 signalled=''
    trap 'signalled=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null || :' TERM HUP
    "$@" &
    child=$!
    [ -z "$signalled" ] || kill -TERM "$child" # it came before the number was known
    trap 'signalled=1' INT # the terminal sends Ctrl-C to the command as well
    while :; do
        signalled='' status=0
        wait "$child" || status=$?
        [ "$status" -eq 127 ] || code=$status # 127: the status has been given already
        [ -n "$signalled" ] || break # a signal ends `wait` before the command ends
    done
    trap - TERM HUP INT
    return "$code"
}

cpu_threads() {
    printf '%s' "${OMP_NUM_THREADS:-$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN || echo 1)}"
}

# Calls a function ($1) with the flags that name the model, then the other flags ("$@").
with_model() {
    stage_function=$1
    shift
    if [ -n "$infer_expt_dir" ]; then
        "$stage_function" "--infer_expt_dir=$infer_expt_dir" "$@"
    else
        "$stage_function" "--config=$config" ${name:+"--name=$name"} "$@"
    fi
}

stage_3() {
    log_stage "3: speech"
    synthesise "--infer_mode=$infer_mode" \
        ${infer_dataset:+"--infer_dataset=$infer_dataset"} \
        ${infer_testing_set:+"--infer_testing_set=$infer_testing_set"} \
        ${overwrite:+--overwrite} "$@"
}

# Names the command of the next stage. "$@": every `--set=KEY=VALUE`, and others.
log_next() {
    case $last in
        1) next="--stage 2 --name ${name:-my_model}" ;;
        2)
            [ -z "$synthetic" ] || return 0 # that voice makes noise
            next="--stage 3 --name $name --infer_mode single $single_example"
            ;;
        *) return 0 ;;
    esac
    next="sh $(quoted "$recipe_dir/run.sh") $next --config $(quoted "$config")"
    for argument do
        case $argument in --set=*) next="$next --set $(quoted "${argument#--set=}")" ;; esac
    done
    printf 'next: %s\n' "$next" >&2
}

# Prints $1 as one word of a command line.
quoted() {
    case $1 in
        '' | *[!_[:alnum:]./=,:-]*) printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")" ;;
        *) printf %s "$1" ;;
    esac
}
