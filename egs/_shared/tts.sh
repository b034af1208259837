# shellcheck shell=sh disable=SC2154  # recipe.sh sets the other variables
# The flags and stage 3 of text-to-speech recipes.

infer_text='' infer_text_file='' speaker=''
pitch_control='' energy_control='' duration_control='' pace='' fade_out='' save_alignment=''
transform_flatten='' transform_invert='' transform_amplify='' transform_shift='' transform_custom=''
# shellcheck disable=SC2034  # read in stages.sh
readonly single_example="--infer_text 'Any text.'"

# $1: a flag without a value. Fails for any other.
read_kind_switch() {
    case $1 in
        --resample) resample=1 ;;
        --pitch_transform_flatten) transform_flatten=1 ;;
        --pitch_transform_invert) transform_invert=1 ;;
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
        --pace) pace=$2 ;;
        --pitch_transform_amplify) transform_amplify=$2 ;;
        --pitch_transform_shift) transform_shift=$2 ;;
        --pitch_transform_custom)
            case $2 in
                ramp:*) transform_custom=$2 ;;
                *) transform_custom=$(locate "$2") ;;
            esac
            ;;
        --fade_out) fade_out=$2 ;;
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
    check_number --pace "$pace" '*[!0-9.]*' "a number from 0.1 to 10, such as 1.2"
    [ -z "$pace" ] || [ -z "$duration_control" ] || fail "--pace and --duration_control exclude each other"
    check_signed --pitch_transform_amplify "$transform_amplify"
    check_signed --pitch_transform_shift "$transform_shift"
    case $fade_out in *[!0-9]*) fail "--fade_out '$fade_out': expected a whole number of frames" ;; esac
    check_custom
    case $save_alignment in
        '' | textgrid | json | ctm | npy) ;;
        *) fail "--save_alignment '$save_alignment': expected textgrid, json, ctm or npy" ;;
    esac
}

# $1: flag; $2: value, which may be negative.
check_signed() {
    case ${2#-} in
        '') [ -z "$2" ] || fail "$1 '$2': expected a number such as 1.5" ;;
        *[!0-9.]* | *.*.* | .) fail "$1 '$2': expected a number such as 1.5" ;;
    esac
}

# A contour that the pitch is multiplied by: a file, or ramp:A:B.
check_custom() {
    case $transform_custom in
        '') return ;;
        ramp:*:*:* | ramp:*[!0-9.:]* | ramp:: | ramp::* | ramp:*:)
            fail "--pitch_transform_custom '$transform_custom': expected ramp:A:B, such as ramp:0.5:1.5"
            ;;
        ramp:*:*) ;;
        ramp:*) fail "--pitch_transform_custom '$transform_custom': expected ramp:A:B, such as ramp:0.5:1.5" ;;
        *) in_root "$transform_custom" || fail "--pitch_transform_custom $transform_custom: no such file" ;;
    esac
    [ -z "$transform_flatten$transform_invert$transform_amplify$transform_shift" ] ||
        fail "--pitch_transform_custom and the other pitch transforms exclude each other"
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
        ${pace:+"--pace=$pace"} \
        ${transform_flatten:+--pitch_transform_flatten} \
        ${transform_invert:+--pitch_transform_invert} \
        ${transform_amplify:+"--pitch_transform_amplify=$transform_amplify"} \
        ${transform_shift:+"--pitch_transform_shift=$transform_shift"} \
        ${transform_custom:+"--pitch_transform_custom=$transform_custom"} \
        ${fade_out:+"--fade_out=$fade_out"} \
        ${save_alignment:+"--save_alignment=$save_alignment"} \
        ${seed:+"--seed=$seed"} "$@"
}
