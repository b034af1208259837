# shellcheck shell=sh disable=SC2154  # recipe.sh sets the other variables
# The flags and stage 3 of text-to-speech recipes.

infer_text='' infer_text_file='' speaker=''
pitch_control='' energy_control='' duration_control='' save_alignment=''
# shellcheck disable=SC2034  # read in stages.sh
readonly single_example="--infer_text 'Any text.'"

# $1: a flag without a value. Fails for any other.
read_kind_switch() {
    case $1 in
        --resample) resample=1 ;;
        *) return 1 ;;
    esac
}

# $1: flag; $2: its value. Fails for a flag that does not exist.
read_kind_flag() {
    case $1 in
        --infer_text) infer_text=$2 ;;
        --infer_text_file) infer_text_file=$(locate "$2") ;;
        --vocoder_dir) vocoder_dir=$(locate "$2") ;;
        --speaker) speaker=$2 ;;
        --pitch_control) pitch_control=$2 ;;
        --energy_control) energy_control=$2 ;;
        --duration_control) duration_control=$2 ;;
        --save_alignment) save_alignment=$2 ;;
        *) return 1 ;;
    esac
}

# $1: flag. Fails with a reason if it is a flag of vocoder recipes.
refuse_foreign() {
    case $1 in
        --from_acoustic | --infer_audio_dir | --infer_feature_dir)
            fail "$1 goes with vocoder recipes; this is a text-to-speech recipe (--help lists its flags)"
            ;;
    esac
}

check_kind_values() {
    [ -z "$resample" ] || [ -n "$vocoder_dir" ] || fail "--resample goes with --vocoder_dir"
    check_number --pitch_control "$pitch_control" '*[!0-9.]*' "a number from 0.1 to 10, such as 1.2"
    check_number --energy_control "$energy_control" '*[!0-9.]*' "a number from 0.1 to 10, such as 1.2"
    check_number --duration_control "$duration_control" '*[!0-9.]*' "a number from 0.1 to 10, such as 1.2"
    case $save_alignment in
        '' | textgrid | json | ctm | npy) ;;
        *) fail "--save_alignment '$save_alignment': expected textgrid, json, ctm or npy" ;;
    esac
}

check_single() {
    [ -n "$infer_text$infer_text_file" ] || fail "--infer_mode single needs --infer_text or --infer_text_file"
    [ -z "$infer_text" ] || [ -z "$infer_text_file" ] || fail "--infer_text and --infer_text_file exclude each other"
    [ -z "$infer_text_file" ] || in_root "$infer_text_file" || fail "--infer_text_file $infer_text_file: no such file"
}

check_no_single() {
    [ -z "$infer_text$infer_text_file" ] || fail "--infer_text and --infer_text_file go with --infer_mode single"
}

# Stage 3; "$@": the flags that both kinds of recipes have.
synthesise() {
    "$python" -m bins.inference ${infer_text:+"--infer_text=$infer_text"} \
        ${infer_text_file:+"--infer_text_file=$infer_text_file"} \
        ${vocoder_dir:+"--vocoder_dir=$vocoder_dir"} ${resample:+--resample} \
        ${speaker:+"--speaker=$speaker"} \
        ${pitch_control:+"--pitch_control=$pitch_control"} \
        ${energy_control:+"--energy_control=$energy_control"} \
        ${duration_control:+"--duration_control=$duration_control"} \
        ${save_alignment:+"--save_alignment=$save_alignment"} \
        ${seed:+"--seed=$seed"} "$@"
}
