# shellcheck shell=sh disable=SC2154  # recipe.sh sets the other variables
# Checks all flags before any work; evaluation.sh checks those of stage 4.

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

# "$@": the flags that can be repeated.
check_values() {
    # Files of the recipe's folder can be named from any folder.
    if ! in_root "$config" && [ -f "$recipe_dir/$config" ]; then config=$recipe_dir/$config; fi
    in_root "$config" || fail "--config $config: no such file"
    check_gpu
    check_number --num_workers "$num_workers" '*[!0-9]*' "a whole number from 1"
    check_kind_values
    case $seed in *[!0-9]*) fail "--seed '$seed': expected a whole number" ;; esac
    if runs_stage 2; then check_training; fi
    [ -z "$synthetic" ] || [ "$first" -eq 2 ] ||
        fail "--synthetic replaces the data of stages 0 and 1: start with --stage 2"
    check_machines
    [ -z "$profile" ] || runs_stage 2 || fail "--profile goes with stage 2"
    if [ -n "$name" ]; then check_name; fi
    [ -z "$overwrite" ] || runs_stage 3 || fail "--overwrite goes with stage 3"
    if runs_stage 3; then check_inference; fi
    if runs_stage 4; then check_evaluation "$@"; fi
}

# Whether the file $1 exists; relative paths start at the root, where Python runs.
in_root() {
    case $1 in
        /*) [ -f "$1" ] ;;
        *) [ -f "$root/$1" ] ;;
    esac
}

# Whether the file or folder $1 exists.
exists() (
    cd -- "$root" && [ -e "$1" ]
)

# $1: flag; $2: the folder it names, if any.
check_folder() {
    [ -z "$2" ] || (cd -- "$root" && [ -d "$2" ]) || fail "$1 $2: no such folder"
}

check_gpu() {
    case ,$gpu, in
        ,,) ;;
        # also GPU-..., MIG-...: the names that nvidia-smi -L prints
        *,,* | *[![:alnum:],-]* | *,[!0-9GM-]* | *,G[!P]* | *,M[!I]*)
            fail "--gpu '$gpu': expected numbers and commas, as 0 or 0,1,2,3"
            ;;
    esac
}

# $1: flag; $2: value; $3: pattern that it must not match; $4: what is expected.
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
        fail "--resume cannot be combined with --restart or --init_from"
}

check_inference() {
    [ -n "$infer_expt_dir$name" ] || fail "stage 3 needs --infer_expt_dir, or --name"
    [ "$n_outputs" -le 1 ] || fail "stage 3 writes into one --infer_output_dir, found $n_outputs"
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
