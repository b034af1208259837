# shellcheck shell=sh disable=SC2154  # recipe.sh sets the other variables
# Stage 4: its flags, their checks, and its command.

recordings='' natural='' texts='' metrics='' checks='' transcripts='' recogniser=''
speaker_encoder='' copies='' report_dir='' page=''

# $1: flag; $2: its value. Fails for a flag that does not exist.
read_evaluation_flag() {
    case $1 in
        --recordings) recordings=$(locate "$2") ;;
        --natural) natural=$(locate "$2") ;;
        --texts) texts=$(locate "$2") ;;
        --metrics) metrics=${2:-,} ;; # an empty name is refused
        --checks) checks=${2:-,} ;;
        --transcripts) transcripts=$(locate "$2") ;;
        --recogniser) recogniser=$2 ;;
        --speaker_encoder) speaker_encoder=$2 ;;
        --copies) copies=$2 ;;
        --report_dir) report_dir=$(from_here "$2") ;;
        --page) page=$2 ;;
        *) return 1 ;;
    esac
}

# "$@": the flags that can be repeated.
check_evaluation() {
    [ -n "$infer_expt_dir$name" ] || [ "$n_outputs" -gt 0 ] ||
        fail "stage 4 needs --infer_expt_dir, --name or --infer_output_dir"
    runs_stage 3 || check_outputs "$@"
    case $infer_mode in
        '' | single | batch) ;;
        *) fail "--infer_mode '$infer_mode': expected single or batch" ;;
    esac
    case $infer_testing_set in
        '' | train | test | golden_test) ;;
        *) fail "--infer_testing_set '$infer_testing_set': expected train, test or golden_test" ;;
    esac
    [ -z "$infer_testing_set" ] || [ -n "$infer_dataset" ] ||
        fail "--infer_testing_set needs --infer_dataset"
    check_folder --recordings "$recordings"
    check_folder --natural "$natural"
    check_folder --transcripts "$transcripts"
    [ -z "$texts" ] || in_root "$texts" || fail "--texts $texts: no such file"
    [ ! -e "$report_dir" ] || [ -d "$report_dir" ] || fail "--report_dir $report_dir: is a file, expected a folder"
    check_function --recogniser "$recogniser"
    check_function --speaker_encoder "$speaker_encoder"
    check_yes_or_no --copies "$copies"
    check_yes_or_no --page "$page"
    check_scorers metric "$metrics" mcd,wer
    check_scorers check "$checks" silence,words
}

# $1: flag; $2: its value, if any.
check_yes_or_no() {
    case $2 in
        '' | yes | no) ;;
        *) fail "$1 '$2': expected yes or no" ;;
    esac
}

# The folders to be scored must exist.
check_outputs() {
    for argument do
        case $argument in
            --infer_output_dir=*) check_folder --infer_output_dir "${argument#*=}" ;;
        esac
    done
}

# $1: flag; $2: the function it names, if any.
check_function() {
    case $2 in
        '') ;;
        *[[:space:]/]* | *:*:*) fail "$1 '$2': expected module:function, as in my_package.asr:hear" ;;
        ?*:?*) ;;
        *) fail "$1 '$2': expected module:function, as in my_package.asr:hear" ;;
    esac
}

# Each metric and each check is a file. $1: metric or check; $2: names; $3: an example.
check_scorers() {
    [ "$1/$2" != check/none ] || return 0
    names=${2:+$2,}
    while [ -n "$names" ]; do
        scorer=${names%%,*}
        names=${names#*,}
        case $scorer in
            all) ;;
            '' | none | [!a-z]* | *[!a-z0-9_]*) fail "--${1}s '$2': expected names and commas, as in $3" ;;
            *)
                [ -f "$root/processors/scoring/${1}s/$scorer.py" ] ||
                    fail "--${1}s $scorer: no such $1$(scorers "$1" | nearest "$scorer") (known: $(scorers "$1" | xargs))"
                ;;
        esac
    done
}

# $1: metric or check. Prints all names, one a line.
scorers() {
    echo all
    for scorer in "$root/processors/scoring/${1}s"/[a-z]*.py; do
        scorer=${scorer##*/}
        printf '%s\n' "${scorer%.py}"
    done
}

stage_4() {
    log_stage "4: scores"
    # A plug-in may be in the caller's folder; last, so that it shadows no module of the repository.
    [ -z "$recogniser$speaker_encoder" ] || export PYTHONPATH="$PYTHONPATH:$caller_dir"
    "$python" -m bins.evaluate ${infer_mode:+"--infer_mode=$infer_mode"} \
        ${infer_dataset:+"--infer_dataset=$infer_dataset"} \
        ${infer_testing_set:+"--infer_testing_set=$infer_testing_set"} \
        ${recordings:+"--recordings=$recordings"} ${natural:+"--natural=$natural"} \
        ${vocoder_dir:+"--vocoder_dir=$vocoder_dir"} ${resample:+--resample} \
        ${texts:+"--texts=$texts"} ${metrics:+"--metrics=$metrics"} \
        ${checks:+"--checks=$checks"} ${transcripts:+"--transcripts=$transcripts"} \
        ${recogniser:+"--recogniser=$recogniser"} \
        ${speaker_encoder:+"--speaker_encoder=$speaker_encoder"} \
        ${copies:+"--copies=$copies"} ${report_dir:+"--report_dir=$report_dir"} ${page:+"--page=$page"} \
        ${num_workers:+"--num_workers=$num_workers"} "$@"
}
