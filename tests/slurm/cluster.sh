#!/bin/sh
# A one-node SLURM cluster on this machine, for tests: tests/slurm/cluster.sh start|stop FOLDER (as root)
# Keys, configuration, state and logs live in FOLDER; /etc/slurm/slurm.conf becomes a link to its configuration, since
# Snakemake's executor drops SLURM_CONF from the environment of jobs.
set -eu
PATH=$PATH:/usr/sbin:/sbin
system_conf=/etc/slurm/slurm.conf
action=${1:-}
folder=${2:-}
if [ -z "$folder" ]; then
    echo "usage: tests/slurm/cluster.sh start|stop FOLDER" >&2
    exit 2
fi

# Whether slurm.conf is somebody's: a file, or a link into a folder whose controller still runs. A link that a killed
# test left behind is nobody's.
foreign() {
    [ -e "$system_conf" ] || return 1
    [ -L "$system_conf" ] || return 0
    owner=$(dirname "$(readlink "$system_conf")")
    [ "$owner" != "$folder" ] && [ -s "$owner/slurmctld.pid" ] && kill -0 "$(cat "$owner/slurmctld.pid")" 2> /dev/null
}

stop() {
    for daemon in slurmd slurmctld munged; do
        if [ -s "$folder/$daemon.pid" ]; then
            kill "$(cat "$folder/$daemon.pid")" 2> /dev/null || true
            rm -f "$folder/$daemon.pid"
        fi
    done
    if [ "$(readlink "$system_conf")" = "$(readlink -f "$folder")/slurm.conf" ]; then
        rm "$system_conf"
    fi
}

start() {
    if [ "$(id -u)" != 0 ]; then
        echo "slurmd needs root: run this as root, on a machine that may be spoilt." >&2
        exit 1
    fi
    for program in slurmctld slurmd munged sbatch; do
        if ! command -v "$program" > /dev/null; then
            echo "$program is not installed; on Debian: apt-get install slurm-wlm munge" >&2
            exit 1
        fi
    done
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    if foreign; then
        echo "$system_conf belongs to another cluster; this machine cannot have a second one." >&2
        exit 1
    fi
    mkdir -p "$folder/state" "$folder/spool" "$(dirname "$system_conf")"
    ln -sf "$folder/slurm.conf" "$system_conf"
    if [ ! -f "$folder/munge.key" ]; then
        (umask 077 && dd if=/dev/urandom of="$folder/munge.key" bs=1024 count=1 2> /dev/null)
    fi
    host=$(hostname -s)
    memory_mb=$(awk '/^MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
    cat > "$folder/slurm.conf" << END
ClusterName=dice
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
ReturnToService=2
MinJobAge=600
SchedulerParameters=sched_interval=1,batch_sched_delay=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$memory_mb State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
END
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --seed-file="$folder/munge.seed" --log-file="$folder/munged.log"
    slurmctld -f "$folder/slurm.conf"
    slurmd -f "$folder/slurm.conf"
    for _ in $(seq 60); do
        if sinfo --noheader --format=%T 2> /dev/null | grep -q idle; then
            echo "$folder/slurm.conf"
            return
        fi
        sleep 0.5
    done
    tail -n 5 "$folder/slurmctld.log" "$folder/slurmd.log" >&2
    echo "the node was not idle within 30 seconds; the logs in $folder say why." >&2
    exit 1
}

case $action in
    start) start ;;
    stop) stop ;;
    *) echo "usage: tests/slurm/cluster.sh start|stop FOLDER" >&2; exit 2 ;;
esac
