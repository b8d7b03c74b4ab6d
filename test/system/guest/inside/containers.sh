# shellcheck shell=dash
# Run by init, on the disk that root_image.sh made: starts containerd, the kubelet and pods, and reports at
# four moments what the kubelet, the kernel and the agent say of them.
kubelet_folder=/var/lib/kubelet

mount_the_rest() {
  mkdir -p /dev/pts /dev/shm /dev/mqueue /dev/hugepages
  mount -t devpts devpts /dev/pts
  mount -t tmpfs shm /dev/shm
  mount -t mqueue mqueue /dev/mqueue
  mount -t hugetlbfs hugetlbfs /dev/hugepages
  mount -t tmpfs run /run
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mount --make-rshared /
}

seconds_up() { cut -d . -f 1 /proc/uptime; }
passed() { echo "$(cut -d ' ' -f 1 /proc/uptime) $*" | tee -a /tmp/times; }

# Polls; what does not come true in a minute and a half ends the guest, with the logs.
await() { # await WHAT COMMAND...
  what=$1
  shift
  deadline=$(($(seconds_up) + 90))
  until "$@" > /dev/null 2>&1; do
    if [ "$(seconds_up)" -gt "$deadline" ]; then
      section never echo "$what"
      exit
    fi
    sleep 0.2
  done
  passed "$what"
}

say_logs() {
  section times cat /tmp/times
  for program in containerd kubelet deviceplugin; do
    section "$program" cat "/tmp/$program.log"
  done
  switch_off
}

start_containerd() {
  containerd -c /etc/containerd.toml > /tmp/containerd.log 2>&1 &
  await "containerd answers" ctr version
  ctr -n k8s.io images import /etc/image.tar >> /tmp/containerd.log 2>&1
  passed "the image is there"
}

start_kubelet() {
  kubelet --config=/etc/kubelet.yaml > /tmp/kubelet.log 2>&1 &
  await "the kubelet listens to device plugins" [ -S $kubelet_folder/device-plugins/kubelet.sock ]
  deviceplugin example.com/gpu /etc/gpus > /tmp/deviceplugin.log 2>&1 &
  await "the kubelet has the GPUs" gpus_are_allocatable
}

podresources_says() { podresources $kubelet_folder/pod-resources/kubelet.sock "$@"; }
gpus_are_allocatable() { podresources_says allocatable | grep -q example.com/gpu; }
pods() { wget -q -O - http://127.0.0.1:10255/pods; }
phases_are() { # phases_are PHASE... in any order
  [ "$(pods | grep -o '"phase":"[A-Za-z]*"' | cut -d '"' -f 4 | sort)" = "$(printf '%s\n' "$@" | sort)" ]
}

# In the kubelet's folder of pods, one after the other: each arrives whole and in this order.
create() { # create POD...
  for pod in "$@"; do
    cp "/etc/pods/$pod.yaml" "/pods/.$pod"
    mv "/pods/.$pod" "/pods/$pod.yaml"
  done
}

# The folder of the only container of a pod: the kubelet's link to its log ends with its id.
cgroup_of() { # cgroup_of POD
  link=$(echo /var/log/containers/"$1"-*.log)
  id=${link##*-}
  find /sys/fs/cgroup/kubepods -name "${id%.log}"
}

# One fact a line: cgroup, file or field, value.
cgroups() {
  find /sys/fs/cgroup/kubepods -type d | while read -r folder; do
    for file in cpuset.cpus cpuset.cpus.effective cpuset.mems cpuset.mems.effective; do
      echo "${folder##*/} $file $(cat "$folder/$file")"
    done
    while read -r process; do
      sed -n "s/^\([CM][a-z]*_allowed_list\):\t/${folder##*/} \1 /p" "/proc/$process/status"
    done < "$folder/cgroup.procs"
  done
}

look() { # look MOMENT
  section "$1.agent" plumbline-agent --dry-run -o json
  section "$1.list" podresources_says list
  section "$1.cpu_manager_state" cat $kubelet_folder/cpu_manager_state
  section "$1.memory_manager_state" cat $kubelet_folder/memory_manager_state
  section "$1.pods" pods
  section "$1.cgroups" cgroups
  passed "looked: $1"
}

trap say_logs EXIT
mount_the_rest
hostname guest
ip link set lo up
start_containerd
start_kubelet

section allocatable podresources_says allocatable

create first-gpu second-gpu too-big huge shared
await "four pods run and one is refused" phases_are Running Running Running Running Failed
look running
section picture plumbline-agent --dry-run --ascii
section words grep -r _allowed_list: /var/log/pods

echo 1 > "$(cgroup_of second-gpu)/cpuset.cpus"
echo 1 > "$(cgroup_of huge)/cpuset.mems"
look drifted

pod=$(dirname "$(cgroup_of first-gpu)")
rm /pods/first-gpu.yaml
await "a pod has gone" [ ! -d "$pod" ]
look deleted

create third-gpu
await "another took its place" phases_are Running Running Running Running Failed
look replaced
