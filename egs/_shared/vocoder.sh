# shellcheck shell=sh disable=SC2154  # recipe.sh sets the other variables
# The flags and stage 3 of vocoder recipes.

infer_audio_dir='' infer_feature_dir=''
# shellcheck disable=SC2034  # read in stages.sh
readonly single_example='--infer_audio_dir /path/to/recordings'

# $1: a flag without a value. There is none.
read_kind_switch() {
    return 1
}

# $1: flag; $2: its value. Fails for a flag that does not exist.
read_kind_flag() {
    case $1 in
        --from_acoustic) from_acoustic=$(locate "$2") ;;
        --infer_audio_dir) infer_audio_dir=$(locate "$2") ;;
        --infer_feature_dir) infer_feature_dir=$(locate "$2") ;;
        *) return 1 ;;
    esac
}

# $1: flag. Fails with a reason if it is a flag of text-to-speech recipes.
refuse_foreign() {
    case $1 in
        --infer_text | --infer_text_file | --vocoder_dir | --speaker | --pitch_control | \
            --energy_control | --duration_control | --pace | --pitch_transform_* | --fade_out | \
            --resample | --save_alignment)
            fail "$1 goes with text-to-speech recipes; this is a vocoder recipe (--help lists its flags)"
            ;;
    esac
}

check_kind_values() {
    # Only stage 1 computes mels; stage 2 would ignore the flag.
    [ -z "$from_acoustic" ] || runs_stage 1 || fail "--from_acoustic goes with stage 1"
}

check_single() {
    [ -n "$infer_audio_dir$infer_feature_dir" ] ||
        fail "--infer_mode single needs --infer_audio_dir or --infer_feature_dir"
    [ -z "$infer_audio_dir" ] || [ -z "$infer_feature_dir" ] ||
        fail "--infer_audio_dir and --infer_feature_dir exclude each other"
    [ -z "$infer_audio_dir" ] || exists "$infer_audio_dir" ||
        fail "--infer_audio_dir $infer_audio_dir: no such file or folder"
    [ -z "$infer_feature_dir" ] || exists "$infer_feature_dir" ||
        fail "--infer_feature_dir $infer_feature_dir: no such file or folder"
}

check_no_single() {
    [ -z "$infer_audio_dir$infer_feature_dir" ] ||
        fail "--infer_audio_dir and --infer_feature_dir go with --infer_mode single"
}

# Stage 3; "$@": the flags that both kinds of recipes have.
synthesise() {
    "$python" -m bins.vocode ${infer_audio_dir:+"--infer_audio_dir=$infer_audio_dir"} \
        ${infer_feature_dir:+"--infer_feature_dir=$infer_feature_dir"} \
        ${seed:+"--seed=$seed"} "$@"
}
