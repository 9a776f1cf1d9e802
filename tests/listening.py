"""The addresses at which a process and its children listen."""

from contextlib import suppress
from ipaddress import ip_address

import psutil


def listening(pid: int) -> set[str]:
    """Return addresses and ports at which a process and its children listen for TCP."""
    found = set()
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                for socket in each.net_connections("tcp"):
                    if socket.status == psutil.CONN_LISTEN:
                        found.add(f"{socket.laddr.ip} {socket.laddr.port}")
    return found


def exposed(addresses: set[str]) -> set[str]:
    """Return the addresses that other machines can reach."""
    hosts = {address: ip_address(address.split()[0]) for address in addresses}
    for address, host in hosts.items():
        if host.version == 6 and host.ipv4_mapped:
            hosts[address] = host.ipv4_mapped
    return {address for address, host in hosts.items() if not host.is_loopback}
