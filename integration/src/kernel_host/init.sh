#!/bin/sh
# The first and only process of the guest. The machine's file system is its root, read-only;
# what it writes goes to memory.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t tmpfs none /run
mount -t tmpfs none /tmp
# No name server is to be asked: what has no name here waits for no answer from elsewhere.
: > /run/resolv.conf
mount --bind /run/resolv.conf /etc/resolv.conf 2>/dev/null
# The console carries answers, not kernel messages.
dmesg -n 1
stty raw -echo

release=$(uname -r)
mkdir -p /run/root/lib/modules
ln -s "/usr/lib/uml/modules/$release" "/run/root/lib/modules/$release"
if [ "$WITH" = ipvs ]; then
    modprobe -d /run/root -a ip_vs ip_vs_rr ip_vs_wrr ip_vs_lc ip_vs_wlc ip_vs_lblc ip_vs_lblcr \
        ip_vs_dh ip_vs_sh ip_vs_sed ip_vs_nq ip_vs_fo ip_vs_ovf ip_vs_mh ip_vs_ftp ip_vs_pe_sip \
        ipip iptable_mangle ip6table_mangle xt_mark xt_multiport xt_tcpudp
    loaded=$?
    [ -d /proc/sys/net/ipv4/vs ] || loaded=1
else
    # The kernel loads by itself what somebody asks it for.
    printf '#!/bin/sh\nexec modprobe -d /run/root "$@"\n' > /run/modprobe
    chmod 755 /run/modprobe
    echo /run/modprobe > /proc/sys/kernel/modprobe
    # /dev/net/tun is there as soon as its module is; elsewhere udev sees to it.
    modprobe -d /run/root -a ipv6 tun
    loaded=$?
fi
ip link set lo up
ip link set vec0 up

# One command per line; after its output a line that begins with a byte no program here prints.
printf '\n\001 0 %s\n' "$loaded"
while read -r number line; do
    # Only to wake the console.
    [ -n "$number" ] || continue
    (eval "$line") </dev/null 2>&1
    printf '\n\001 %s %s\n' "$number" "$?"
done
halt -f -p -d
