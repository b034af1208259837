#!/bin/sh
# Stage 2 on two machines of four GPUs each, by SLURM. From the root of the clone:
#   sbatch egs/_shared/slurm.sh egs/tts/FastSpeech2/run.sh --name my_voice --config FILE
# The clone, its .venv, the data and ckpts are on a disk that all machines share. The job continues
# from the newest checkpoint if there is one: after a time limit, submit it again.
#SBATCH --job-name=arion
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
# The trainer saves a checkpoint at SIGTERM: two minutes before the limit.
#SBATCH --signal=TERM@120
#SBATCH --requeue
set -eu

first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MAIN_HOST="$first"
export MAIN_PORT="$((20000 + SLURM_JOB_ID % 10000))" # two jobs on a machine do not meet

recipe=$1
shift
# One of the flags is --name NAME; its folder shows whether there is anything to resume.
name=''
previous=''
for argument do
    case $previous in --name | -n) name=$argument ;; esac
    previous=$argument
done
kind=${recipe%/*/*} # egs/tts
for checkpoint in ckpts/"${kind##*/}/$name"/checkpoints/step-*; do
    if [ -d "$checkpoint" ]; then
        set -- --resume "$@"
        break
    fi
done

# One launch per machine; it ends with all others if one fails.
# shellcheck disable=SC2016  # each machine expands its own SLURM_NODEID
srun --kill-on-bad-exit=1 sh -c '
    recipe=$1
    shift
    exec sh "$recipe" --stage 2 --gpu "$CUDA_VISIBLE_DEVICES" \
        --num_machines "$SLURM_NNODES" --machine_rank "$SLURM_NODEID" \
        --main_process_ip "$MAIN_HOST" --main_process_port "$MAIN_PORT" "$@"
' sh "$recipe" "$@"
