# shellcheck shell=sh disable=SC2154  # recipe.sh sets the other variables
# Stage 2 on several machines: its flags, their checks, and the launcher.

num_machines='' machine_rank='' main_process_ip='' main_process_port='' accelerate_config=''

# $1: flag; $2: its value. Fails for a flag that does not exist.
read_machine_flag() {
    case $1 in
        --num_machines) num_machines=$2 ;;
        --machine_rank) machine_rank=$2 ;;
        --main_process_ip) main_process_ip=$2 ;;
        --main_process_port) main_process_port=$2 ;;
        --accelerate_config) accelerate_config=$(locate "$2") ;;
        *) return 1 ;;
    esac
}

check_machines() {
    check_count --num_machines "$num_machines" 1 65535
    check_count --machine_rank "$machine_rank" 0 65534
    check_count --main_process_port "$main_process_port" 1 65535
    if [ -n "$accelerate_config" ]; then
        check_accelerate_config
    elif [ -n "$num_machines" ]; then
        check_each_machine
    else
        [ -z "$machine_rank$main_process_ip$main_process_port" ] ||
            fail "--machine_rank, --main_process_ip and --main_process_port need --num_machines"
    fi
}

# $1: flag; $2: value, if any; $3: least; $4: greatest.
check_count() {
    case $2 in
        '') return 0 ;;
        *[!0-9]* | 0?* | ??????*) ;; # sh reads numbers that begin with 0 as octal
        *) if [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; then return 0; fi ;;
    esac
    fail "$1 '$2': expected a whole number from $3 to $4"
}

check_each_machine() {
    [ "${machine_rank:-0}" -lt "$num_machines" ] ||
        fail "--machine_rank $machine_rank: --num_machines $num_machines has the ranks 0 to $((num_machines - 1))"
    [ "$num_machines" -gt 1 ] || return 0
    check_training_alone "--num_machines $num_machines"
    [ -n "$machine_rank" ] ||
        fail "--num_machines $num_machines needs --machine_rank: 0 on the main machine, then 1, 2, ..."
    [ -n "$main_process_ip" ] ||
        fail "--num_machines $num_machines needs --main_process_ip: the address of the machine of rank 0"
}

check_accelerate_config() {
    [ -z "$num_machines$main_process_ip$main_process_port" ] ||
        fail "--accelerate_config names the machines: of their flags, only --machine_rank goes with it"
    in_root "$accelerate_config" || fail "--accelerate_config $accelerate_config: no such file"
    check_training_alone --accelerate_config
    kind_of_run=$(accelerate_key distributed_type)
    [ "$kind_of_run" = MULTI_GPU ] ||
        fail "--accelerate_config $accelerate_config: distributed_type is '$kind_of_run', expected MULTI_GPU (also for CPUs)"
    for key in num_processes num_machines; do
        check_count "--accelerate_config $accelerate_config: $key" "$(accelerate_key "$key")" 1 65535
        [ -n "$(accelerate_key "$key")" ] || fail "--accelerate_config $accelerate_config: $key is missing"
    done
}

# $1: flag. Two machines must not write the same data or wavs.
check_training_alone() {
    [ "$first$last" = 22 ] || fail "$1 goes with --stage 2; run the other stages on one machine"
}

# Prints the value of a key ($1) of the YAML or JSON file that `accelerate config` writes.
accelerate_key() (
    cd -- "$root" && sed -n "s/^[ \"]*$1\"*: *[\"']*\([A-Za-z0-9_]*\).*/\1/p" <"$accelerate_config"
)

# Counts this machine's processes and checks the address at which machines meet. After count_gpus.
prepare_machines() {
    local_processes=$processes
    [ "$processes" -gt 0 ] || local_processes=1
    main_process_port=${main_process_port:-29500}
    if [ -n "$accelerate_config" ]; then
        expected=$(($(accelerate_key num_processes) / $(accelerate_key num_machines)))
        [ "$expected" -eq "$local_processes" ] ||
            fail "--accelerate_config $accelerate_config: $expected processes a machine, found $local_processes (the GPUs in --gpu; 1 for the CPU)"
    elif several_machines; then
        problem=$(
            "$python" -c "$MEETING_POINT" "$main_process_ip" "$main_process_port" "$machine_rank" 2>&1
        ) || fail "$problem"
        [ "$machine_rank" -eq 0 ] ||
            printf 'waiting for machine 0 at %s port %s\n' "$main_process_ip" "$main_process_port" >&2
    fi
}

# Ends with a message if the main machine is unknown or, on it, the port cannot be opened.
readonly MEETING_POINT='
import socket, sys
host, port, rank = sys.argv[1], int(sys.argv[2]), sys.argv[3]
try:
    family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
except (OSError, UnicodeError) as error:
    sys.exit(f"--main_process_ip {host}: {error}")
with socket.socket(family, socket.SOCK_STREAM) as listener:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if int(rank) == 0:
            listener.bind(("", port))
    except OSError as error:
        sys.exit(
            f"--main_process_port {port}: {error.strerror}; give another one on every machine"
        )
'

several_machines() {
    [ "${num_machines:-1}" -gt 1 ]
}

# Trains in as many processes as there are GPUs on all machines. $1 ...: the command of one process.
launch_training() {
    if [ -n "$accelerate_config" ]; then
        launch --config_file "$accelerate_config" ${machine_rank:+--machine_rank "$machine_rank"} "$@"
    elif several_machines; then
        launch --multi_gpu --num_processes $((num_machines * local_processes)) \
            --num_machines "$num_machines" --machine_rank "$machine_rank" --same_network \
            --main_process_ip "$main_process_ip" --main_process_port "$main_process_port" "$@"
    elif [ "$processes" -gt 1 ]; then
        launch --multi_gpu --num_processes "$processes" --num_machines 1 --main_process_port 0 "$@"
    else
        # `accelerate launch` would end before the training does.
        supervise "$python" "$@"
    fi
}

# --quiet: the trainer reports errors; a traceback of the launcher adds nothing.
launch() {
    supervise "$python" -m accelerate.commands.launch --quiet --mixed_precision no \
        --dynamo_backend no "$@"
}
